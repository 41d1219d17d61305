// What a reader would complain of in the page that is shown, as lists of what was found where.
const found = { overflow: [], scrolled: [], unbreakable: [], clipped: [], overlapping: [], pale: [], hidden: [], tex: [], fonts: [], order: [] };
const all = [...document.querySelectorAll("body *")];
const shown = (element) => element.checkVisibility({ contentVisibilityAuto: true }) && element.getClientRects().length > 0;
const called = (element) => `${element.localName}.${element.getAttribute("class") ?? ""}: ${element.textContent.slice(0, 60)}`;

const page = document.documentElement;
if (page.scrollWidth > page.clientWidth) found.overflow.push(`${page.scrollWidth} > ${page.clientWidth}`);
for (const element of all.filter((one) => one instanceof HTMLElement)) {
  const style = getComputedStyle(element);
  if (style.overflowX === "visible" || element.clientWidth <= 1) continue;
  const pieces = [...element.querySelectorAll("math")].map((piece) => piece.getBoundingClientRect().width);
  const kind = Math.max(0, ...pieces) > element.clientWidth - 60 ? "unbreakable" : "scrolled";
  if (element.scrollWidth > element.clientWidth + 1) found[kind].push(called(element));
  if (style.overflowY === "hidden" && element.scrollHeight > element.clientHeight + 1) found.clipped.push(called(element));
}

for (const step of document.querySelectorAll(".steps > li")) {
  const cells = [...step.children].filter((cell) => cell.textContent && shown(cell));
  cells.forEach((one, k) => cells.slice(k + 1).forEach((other) => {
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    if (across > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 12) found.overlapping.push(`${called(one)} | ${called(other)}`);
  }));
}

const channels = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
const luminance = (color) => channels(color).slice(0, 3)
  .map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if ((channels(color)[3] ?? 1) === 1) return color;
  }
  return "rgb(255, 255, 255)";
};
for (const element of all) {
  const says = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  if (!says || !shown(element)) continue;
  const style = getComputedStyle(element);
  const color = element instanceof SVGElement ? style.fill : style.color;
  const [dark, light] = [luminance(color), luminance(behind(element))].sort((a, b) => a - b);
  const contrast = (light + 0.05) / (dark + 0.05);
  if (!(contrast >= 4.5)) found.pale.push(`${contrast.toFixed(2)} ${color} on ${behind(element)} ${called(element)}`);
  if (!(element instanceof MathMLElement) && parseFloat(style.fontSize) < 10) found.fonts.push(`${style.fontSize} ${called(element)}`);
  if (!element.closest("code, style") && /[\\$]/.test(element.textContent)) found.tex.push(called(element));
}
for (const inside of document.querySelectorAll("details:not(.machines) > :not(summary)")) if (!shown(inside)) found.hidden.push(called(inside));
for (const wrong of document.querySelectorAll("merror, body :not(:defined)")) found.tex.push(called(wrong));

const headings = [...document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")];
headings.forEach((heading, k) => {
  const before = k ? Number(headings[k - 1].localName[1]) : 0;
  if (Number(heading.localName[1]) > before + 1 || !heading.textContent.trim()) found.order.push(called(heading));
});
const names = all.map((one) => one.id).filter(Boolean);
found.order.push(...names.filter((name, k) => names.indexOf(name) !== k));
for (const link of document.querySelectorAll("a[href^='#']")) if (!names.includes(link.hash.slice(1))) found.order.push(called(link));
for (const svg of document.querySelectorAll("svg:not([aria-label])")) found.order.push(called(svg));
return found;
