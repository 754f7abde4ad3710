"use strict";
/* What all views share: the data, what is chosen, elements and numbers. */

/** @type {PageData} */
const data = JSON.parse(document.getElementById("data")?.textContent ?? "");
/**
 * An element that the page's frame has.
 * @param {string} id
 * @returns {PageElement}
 */
const byId = (id) => /** @type {any} */ (document.getElementById(id));
const text = (number) => data.strings[number];
/**
 * The index of each name.
 * @template {string} T
 * @param {T[]} names
 * @returns {Record<T, number>}
 */
const indices = (names) => /** @type {any} */ (Object.fromEntries(names.map((name, index) => [name, index])));
// Fields of the arrays that stand for functions and instructions: the page says in which order they are (html/data.rs).
const F = indices(data.names.function);
const I = indices(data.names.instruction);
// Parts of time in the order in which they are drawn; `index` is their place in the data.
const STORE_QUEUE = "Store queue full";
const PARTS = ["Execution", "ALU stall", "Load stall", "Store stall", STORE_QUEUE, "Front-end", "Mispredict", "Misc. flush"]
  .map((name) => ({ name, index: data.names.parts.indexOf(name) }))
  .map(({ name, index }) => ({ index, name, color: name === STORE_QUEUE ? "var(--cq)" : `var(--c${index})` }));
const PART_COUNT = data.names.parts.length;

// What is chosen; views read it and are drawn anew when it changes.
/** @type {Chosen} */
const chosen = { process: data.focus ?? 0, thread: "", module: -1, words: "", range: null, profilers: false };

// Everything from the guest goes through textContent or setAttribute, never through markup.
const SVG = new Set(["svg", "rect", "line", "text", "path", "g", "title"]);
/**
 * An element with attributes and children; those that are null or undefined are left out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {(Node | string | number | null | undefined)[]} children
 * @returns {PageElement}
 */
function make(tag, attributes = {}, ...children) {
  const element = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(.../** @type {(Node | string)[]} */ (children.filter((child) => child !== null && child !== undefined)));
  return /** @type {any} */ (element);
}
const button = (name, act, attributes = {}) => {
  const element = make("button", { type: "button", ...attributes }, name);
  element.addEventListener("click", act);
  return element;
};
// One for all: `toLocaleString` makes one each time.
const inGroups = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const number = (value) => inGroups.format(Math.round(value));
const percent = (share) => (share === 0 ? "·" : (100 * share).toFixed(1));
function compact(value) {
  for (const [unit, size] of /** @type {[string, number][]} */ ([["G", 1e9], ["M", 1e6], ["k", 1e3]])) {
    if (value >= size) return (value / size).toFixed(value >= 100 * size ? 0 : value >= 10 * size ? 1 : 2) + " " + unit;
  }
  return number(value);
}
function sum(values) {
  let total = 0;
  for (let at = 0; at < values.length; at += 1) total += values[at];
  return total;
}
const file = (path) => path.slice(path.lastIndexOf("/") + 1);
// Shortens a function's name by the rules of widths.rs: the arguments of templates go first, then parameters; an offset (+0x12)
// stays. Who shows a short name gives the whole one in a `title`.
const LONGEST_NAME = 60;
function brief(name, longest = LONGEST_NAME) {
  if (name.length <= longest) return name;
  const offset = /\+0x[0-9a-f]+$/.exec(name)?.[0] ?? "";
  const parts = [name.slice(0, name.length - offset.length)];
  const fits = () => parts.at(-1).length + offset.length <= longest;
  for (const [open, close] of ["<>", "()"]) if (!fits()) parts.push(withoutInner(parts.at(-1), open, close));
  return (fits() ? parts.at(-1) : parts.at(-1).slice(0, Math.max(1, longest - offset.length - 1)) + "…") + offset;
}
function withoutInner(name, open, close) {
  let [out, depth, before] = ["", 0, " "];
  for (let at = 0; at < name.length; at += 1) {
    const letter = name[at];
    // `operator<<`, `operator->`, and the one pair of parentheses that is a name.
    const isName = /operator[<>()]*$/.test(out) || name.startsWith("(anonymous", at);
    if (letter === open && !(depth === 0 && isName)) {
      if (depth === 0) out += name[at + 1] === close ? open : open + "…";
      depth += 1;
    } else if (letter === close && depth > 0 && before !== "-") {
      depth -= 1;
    }
    if (depth === 0) out += letter;
    before = letter;
  }
  return out;
}
const lower = (value) => value.toLowerCase();
const hasWords = (value, words) => words.every((word) => value.includes(word));
const wordsOf = (value) => lower(value).split(/\s+/).filter(Boolean);

/* Stacks of parts */

const legend = (parts) => make("div", { class: "legend" }, ...parts.map((part) =>
  make("span", {}, make("i", { class: "swatch", style: `background:${part.color}` }), part.name)));

function stackTitle(stack, parts = PARTS) {
  const total = sum(stack) || 1;
  return parts.filter((part) => stack[part.index] > 0)
    .map((part) => `${part.name} ${percent(stack[part.index] / total)} %`).join("\n");
}

// The parts side by side, as a background image.
function gradient(stack, total = sum(stack), parts = PARTS) {
  let at = 0;
  const stops = [];
  for (const part of parts) {
    const share = 100 * (stack[part.index] ?? 0) / (total || 1);
    if (share > 0) stops.push(`${part.color} ${at.toFixed(2)}% ${(at += share).toFixed(2)}%`);
  }
  return stops.length ? `linear-gradient(90deg,${stops.join(",")})` : "none";
}

function miniStack(stack) {
  if (!sum(stack)) return null;
  return make("span", { class: "mini", style: `background-image:${gradient(stack)}`, title: stackTitle(stack) });
}

/* What the browser has of the page's own */

// JSON of another element, once the page is whole; its strings are put in place by `decode`.
const blocks = new Map();
function block(id, decode) {
  if (!blocks.has(id)) {
    const element = byId(id);
    if (!element) return null;
    const parsed = JSON.parse(element.textContent);
    blocks.set(id, decode(parsed));
    // The browser can forget the text.
    element.textContent = "";
  }
  return blocks.get(id);
}
/** @type {Promise<void>} */
const whole = new Promise((resolve) => {
  if (document.readyState !== "loading") resolve();
  else document.addEventListener("DOMContentLoaded", () => resolve());
});

function remembered(key, value) {
  try {
    if (value === undefined) return localStorage.getItem("tipsim." + key);
    localStorage.setItem("tipsim." + key, value);
  } catch { /* A page from a file may have no storage. */ }
  return null;
}

// Light, dark, or as the system has it.
function theme() {
  const root = document.documentElement;
  const set = (name) => {
    if (name) root.dataset.theme = name;
    else delete root.dataset.theme;
    byId("theme").textContent = { light: "☀ light", dark: "☾ dark" }[name] ?? "◐ system";
  };
  const order = ["", "light", "dark"];
  const next = () => {
    const name = order[(order.indexOf(root.dataset.theme ?? "") + 1) % order.length];
    set(name);
    remembered("theme", name);
  };
  set(remembered("theme") ?? "");
  byId("theme").addEventListener("click", next);
  return next;
}

/* Keyboard: what each key does, and the list of them */

// [key, what it does, function]
const keys = [];
function pressed(event) {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (typing || event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
  const key = keys.find(([name, , act]) => act && name === event.key);
  if (!key) return;
  event.preventDefault();
  key[2]();
}
function help() {
  const dialog = byId("help");
  if (dialog.open) return dialog.close();
  byId("key-list").replaceChildren(...keys.map(([name, what]) =>
    make("div", {}, make("dt", {}, ...name.split(" ").map((key) => make("kbd", {}, key))), make("dd", {}, what))));
  dialog.showModal();
}
document.addEventListener("keydown", pressed);

/** @returns {HTMLElement[]} */
const pageSections = () => [...document.querySelectorAll("main > section")].map((entry) => /** @type {HTMLElement} */ (entry));

// Goes to the next section, or the one before: `step` 1 or -1.
function section(step) {
  const shown = pageSections().filter((entry) => !entry.hidden);
  const top = (entry) => entry.getBoundingClientRect().top;
  const line = (document.querySelector("nav")?.getBoundingClientRect().bottom ?? 0) + 24;
  const target = step > 0 ? shown.find((entry) => top(entry) > line) : shown.findLast((entry) => top(entry) < line - 48);
  if (!target) return;
  target.scrollIntoView();
  const heading = target.querySelector("h2");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
function sectionLinks() {
  const shown = pageSections().filter((entry) => !entry.hidden && entry.querySelector("h2"));
  byId("sections").replaceChildren(...shown.map((entry, at) => {
    entry.id ||= `section-${at}`;
    return make("a", { href: "#" + entry.id }, entry.querySelector("h2")?.firstChild?.textContent);
  }));
}
