// Reads a JSON list, and writes of each page of Markdown the words of its blocks. Of each formula it writes what KaTeX (strict) and MathJax (with AMS, as GitHub has it) say against each,
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

function blocks(text) {
  const walker = new Parser().parse(text).walker();
  const found = [];
  for (let step = walker.next(); step; step = walker.next()) {
    const { type, literal } = step.node;
    if (step.entering && (type === "paragraph" || type === "heading")) found.push("");
    else if (step.entering && type === "text") found[found.length - 1] += literal;
    else if (type === "softbreak") found[found.length - 1] += " ";
    else if (step.entering && type === "html_inline" && !/^<\/?span>$/.test(literal)) found[found.length - 1] += "HTML";
  }
  return found;
}

const said = JSON.parse(readFileSync(0, "utf8")).map((asked) => (typeof asked === "string" ? read(asked) : blocks(asked.markdown)));
process.stdout.write(JSON.stringify(said));

function read(formula) {
  return {
    KaTeX: against(() => katex.renderToString(formula, { strict: "error", displayMode: true, throwOnError: true })),
    MathJax: against(() => page.convert(formula, { display: true })),
    Markdown: byMarkdown(formula),
  };
}
