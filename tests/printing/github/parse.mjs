// Reads a JSON list of formulas, and writes what KaTeX (strict) and MathJax (with AMS, as GitHub has it) say against each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
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

const formulas = JSON.parse(readFileSync(0, "utf8"));
const said = formulas.map((formula) => ({
  KaTeX: against(() => katex.renderToString(formula, { strict: "error", displayMode: true, throwOnError: true })),
  MathJax: against(() => page.convert(formula, { display: true })),
}));
process.stdout.write(JSON.stringify(said));
