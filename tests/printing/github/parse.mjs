// Reads a JSON list of formulas, and writes what KaTeX (strict) and MathJax (with AMS, as GitHub has it) say against each,
// and how Markdown shows it where that changes a formula in the midst of a sentence.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Parser } = require("commonmark");
const katex = require("katex");
const { mathjax } = require("mathjax-full/js/mathjax.js");
const { TeX } = require("mathjax-full/js/input/tex.js");
const { SVG } = require("mathjax-full/js/output/svg.js");
const { liteAdaptor } = require("mathjax-full/js/adaptors/liteAdaptor.js");
const { RegisterHTMLHandler } = require("mathjax-full/js/handlers/html.js");
require("mathjax-full/js/input/tex/ams/AmsConfiguration.js");
require("mathjax-full/js/input/tex/boldsymbol/BoldsymbolConfiguration.js");

RegisterHTMLHandler(liteAdaptor());
const page = mathjax.document("", {
  InputJax: new TeX({
    packages: ["base", "ams", "boldsymbol"],
    formatError: (_, error) => {
      throw error;
    },
  }),
  OutputJax: new SVG(),
});

function against(parse) {
  try {
    parse();
    return "";
  } catch (error) {
    return String(error.message);
  }
}

function shown(text) {
  const walker = new Parser().parse(text).walker();
  let found = "";
  for (let step = walker.next(); step; step = walker.next()) {
    found += step.entering ? (step.node.type === "text" ? step.node.literal : step.node.type === "softbreak" ? " " : "") : "";
  }
  return found;
}

function byMarkdown(formula) {
  const [before, after] = [`Let $${formula}$ and $${formula}$, `, ` $${formula}$.`];
  const plain = `${before}this${after}`.replace(/\s+/g, " ");
  const seen = shown(`${before}*this*${after}`).replace(/\s+/g, " ");
  return seen === plain ? "" : seen;
}

const formulas = JSON.parse(readFileSync(0, "utf8"));
const said = formulas.map((formula) => ({
  KaTeX: against(() => katex.renderToString(formula, { strict: "error", displayMode: true, throwOnError: true })),
  MathJax: against(() => page.convert(formula, { display: true })),
  Markdown: byMarkdown(formula),
}));
process.stdout.write(JSON.stringify(said));
