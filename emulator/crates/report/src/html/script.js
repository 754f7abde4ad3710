"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const text = (number) => data.strings[number];
const byId = (id) => document.getElementById(id);
// Fields of the row arrays (html.rs).
const F = { process: 0, name: 1, module: 2, cycles: 3, share: 4, stack: 5, shares: 6, missing: 7 };
const I = {
  process: 0, pc: 1, label: 2, function: 3, inlined: 4, source: 5, text: 6, cycles: 7, share: 8, stack: 9, shares: 10,
};
// `index` counts all columns, `at` those whose shares the rows have.
const primary = data.columns.map((column, index) => ({ ...column, index })).filter((column) => column.primary)
  .map((column, at) => ({ ...column, at }));
const LEVELS = ["Instruction", "Basic block", "Function"];
let process = data.focus ?? 0;

// Everything from the guest goes through textContent or setAttribute, never through markup.
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "line", "text", "path", "g", "title"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
const number = (value) => Math.round(value).toLocaleString("en-US");
const percent = (share) => (share === 0 ? "·" : (100 * share).toFixed(1));
function compact(value) {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (value >= size) return (value / size).toFixed(value >= 100 * size ? 0 : value >= 10 * size ? 1 : 2) + " " + unit;
  }
  return number(value);
}

function header() {
  const { cycles, idle, instructions, ipc, traps } = data.totals;
  const tiles = [
    [compact(cycles), "cycles", number(cycles)],
    [compact(instructions), "instructions", number(instructions)],
    [ipc.toFixed(2), "instructions per cycle", ""],
    [cycles ? (100 * idle / cycles).toFixed(1) + " %" : "0 %", "idle, not profiled", number(idle) + " cycles"],
    [compact(traps), "traps", number(traps)],
    [number(data.processes.length - 1), "processes", ""],
  ];
  byId("tiles").append(...tiles.map(([value, name, title]) =>
    make("div", { class: "tile", title: title || null }, make("b", {}, value), make("span", {}, name))));
  const about = data.meta?.description ?? data.meta?.command ?? data.meta?.spec?.run?.command;
  if (typeof about === "string") byId("subtitle").textContent = about.trim();
  byId("process").append(...data.processes.map((entry, index) =>
    make("option", { value: index }, `${entry.name} (${percent(entry.share)} %)`)));
  byId("process").value = process;
}

/* Errors */

function chart(level, chosen) {
  const shown = primary.filter((column) => chosen.errors[column.index]);
  const [left, right, height, width] = [92, 52, 24, 420];
  const error = (column) => chosen.errors[column.index][level];
  const marks = shown.flatMap((column) =>
    [error(column)[0], error(column)[1], column.published[level] ? column.published[level][0] : 0]);
  const limit = Math.max(0.02, ...marks);
  const step = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25].find((size) => limit / size <= 4.5) || 0.25;
  const x = (value) => left + (width - left - right) * value / limit;
  const bottom = shown.length * height + 4;
  const svg = make("svg", {
    viewBox: `0 0 ${width} ${bottom + 18}`, role: "img",
    "aria-label": `${LEVELS[level]} errors: ` +
      shown.map((column) => `${column.label} ${percent(error(column)[0])} %`).join(", "),
  });
  for (let value = 0; value <= limit; value += step) {
    svg.append(make("line", { class: "grid", x1: x(value), x2: x(value), y1: 0, y2: bottom }),
      make("text", { class: "axis", x: x(value), y: bottom + 14, "text-anchor": "middle" },
        +(100 * value).toFixed(1) + " %"));
  }
  shown.forEach((column, row) => {
    const [measured, sampling] = error(column);
    const published = column.published[level];
    const middle = row * height + height / 2 + 1;
    const group = make("g", {}, make("title", {},
      `${column.label}: ${(100 * measured).toFixed(2)} % at the ${LEVELS[level].toLowerCase()} level, ` +
      `${(100 * sampling).toFixed(2)} % from sampling alone` +
      (published ? `, published mean ${published[1]} %` : "")));
    const tip = column.label.startsWith("tip") || column.profiler === null ? " tip" : "";
    group.append(
      make("text", { x: left - 8, y: middle + 4.5, "text-anchor": "end" }, column.label),
      make("rect", { class: "bar" + tip, x: left, y: middle - 7, rx: 2, height: 14,
        width: Math.max(1, x(measured) - left) }),
      make("line", { class: "sampling", x1: x(sampling), x2: x(sampling), y1: middle - 10, y2: middle + 10 }));
    if (published) {
      const at = x(published[0]);
      group.append(make("path", { class: "published",
        d: `M${at} ${middle - 5}L${at + 5} ${middle}L${at} ${middle + 5}L${at - 5} ${middle}Z` }));
    }
    const end = Math.max(x(measured), x(sampling) + 2, published ? x(published[0]) + 5 : 0);
    group.append(make("text", { class: "value", x: end + 7, y: middle + 4.5 }, percent(measured)));
    svg.append(group);
  });
  return make("div", { class: "chart" }, make("h3", {}, LEVELS[level], make("span", { class: "muted" }, "error, %")), svg);
}
function errors() {
  const chosen = data.processes[process];
  byId("charts").replaceChildren(...LEVELS.map((_, level) => chart(level, chosen)));
  const head = ["Sampler", "every, cycles", "samples"].map((name, index) =>
    make("th", { rowspan: 2, scope: "col", class: index ? "number" : null }, name));
  const levels = LEVELS.map((name) => make("th", { colspan: 3, scope: "colgroup", class: "first" }, name + ", %"));
  const sub = LEVELS.flatMap(() => ["error", "sampling", "published"].map((name, index) =>
    make("th", { class: index ? "number" : "number first", scope: "col" }, name)));
  const body = data.columns.flatMap((column, index) => {
    const error = chosen.errors[index];
    if (!error) return [];
    const every = column.period === null ? "in the guest" : (column.random ? "~" : "") + number(column.period);
    return [make("tr", {}, make("th", { scope: "row" }, column.name),
      make("td", { class: "number" }, every),
      make("td", { class: "number" }, number(chosen.samples[index])),
      ...LEVELS.flatMap((_, level) => [
        make("td", { class: "number first" }, percent(error[level][0])),
        make("td", { class: "number zero" }, percent(error[level][1])),
        make("td", { class: "number zero" }, column.published[level] ? column.published[level][1] : "–"),
      ]))];
  });
  byId("error-table").replaceChildren(make("table", {},
    make("thead", {}, make("tr", {}, ...head, ...levels), make("tr", { class: "second" }, ...sub)),
    make("tbody", {}, ...body)));
}

function errorLegend() {
  const entry = (name, ...shapes) =>
    make("span", {}, make("svg", { viewBox: "0 0 18 12", "aria-hidden": "true" }, ...shapes), name);
  byId("error-legend").append(
    entry("measured here", make("rect", { class: "bar", x: 0, y: 1, width: 18, height: 10, rx: 2 })),
    entry("left by sampling alone: random samples of the truth, as many",
      make("line", { class: "sampling", x1: 9, x2: 9, y1: 0, y2: 12 })),
    entry("published mean, 27 programs at 4 kHz (TIP, MICRO'21)",
      make("path", { class: "published", d: "M9 1L14 6L9 11L4 6Z" })));
}

/* Cycle stacks */

const categories = data.categories.map((name, index) => ({ name, index, color: `var(--c${index})` }));

const legend = (parts) => make("div", { class: "legend" }, ...parts.map((part) =>
  make("span", {}, make("i", { class: "swatch", style: `background:${part.color}` }), part.name)));

function stackTitle(stack, total) {
  return data.categories.map((name, index) => [name, stack[index]]).filter(([, share]) => share > 0)
    .map(([name, share]) => `${name} ${percent(share / total)} %`).join("\n");
}

function stackBar(stack) {
  const total = stack.reduce((sum, share) => sum + share, 0) || 1;
  return make("div", { class: "stack", role: "img", title: stackTitle(stack, total),
    "aria-label": stackTitle(stack, total).replaceAll("\n", ", ") },
  ...stack.map((share, index) => share > 0 ? make("i", {
    style: `width:${(100 * share / total).toFixed(3)}%;background:var(--c${index})`,
  }) : null));
}

function miniStack(stack) {
  const total = stack.reduce((sum, share) => sum + share, 0);
  if (!total) return null;
  let at = 0;
  const stops = stack.flatMap((share, index) => {
    const from = at;
    at += 100 * share / total;
    return share > 0 ? [`var(--c${index}) ${from.toFixed(2)}% ${at.toFixed(2)}%`] : [];
  });
  const style = `background:linear-gradient(90deg,${stops.join(",")})`;
  return make("span", { class: "mini", style, title: stackTitle(stack, total) });
}

function functionsOf() {
  return data.functions.filter((row) => process === 0 || row[F.process] === process);
}

function owner(row, index) {
  return process === 0 ? data.processes[row[index]].name + ": " : "";
}

function stacks() {
  const chosen = data.processes[process];
  const row = (name, share, stack) => make("div", { class: "stack-row" },
    make("div", { class: "name", title: name }, name),
    make("div", { class: "number" }, percent(share) + " %"), stackBar(stack));
  byId("stack-bars").replaceChildren(
    row(`${chosen.name} (class: ${chosen.class})`, chosen.share, chosen.stack),
    ...functionsOf().slice(0, 14).filter((f) => f[F.cycles] > 0)
      .map((f) => row(owner(f, F.process) + text(f[F.name]), scale(f) * f[F.share], f[F.stack])));
  if (!data.top_down) return;
  overTime("stack-time", "Cycle stack", categories, (window) => window.stacks);
}

/* Disagreements in words */

// The sentences that name an instruction, by process and address.
const sentencesOf = new Map();
for (const d of data.disagreements) {
  for (const inst of [d.named, d.truth]) {
    const key = d.process + " " + inst[0];
    sentencesOf.set(key, [...(sentencesOf.get(key) ?? []), text(d.words).replaceAll("`", "")]);
  }
}
const mark = (row) => {
  const found = sentencesOf.get(row[I.process] + " " + row[I.pc]);
  return found ? make("b", { class: "mark", title: found.join("\n") }, "! ") : null;
};

function sentences() {
  const own = data.disagreements.filter((d) => process === 0 || d.process === process);
  byId("words").hidden = data.disagreements.length === 0;
  const names = [...new Set(own.map((d) => d.column))];
  const chosen = byId("accused").value;
  byId("accused").replaceChildren(make("option", { value: "" }, "all"),
    ...names.map((column) => make("option", { value: column }, data.columns[column].label)));
  byId("accused").value = names.includes(Number(chosen)) && chosen !== "" ? chosen : "";
  const shown = own.filter((d) => byId("accused").value === "" || d.column === Number(byId("accused").value));
  byId("sentences").replaceChildren(...shown.slice(0, 60).map((d) => {
    // Every second part was between backquotes.
    const parts = text(d.words).split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
    const button = make("button", { type: "button", title: "Show in the disassembly" }, owner([d.process], 0), ...parts);
    button.addEventListener("click", () => {
      const label = text(d.named[1]).replace(/\+0x[0-9a-f]+$/, "");
      open(data.functions.findIndex((f) => f[F.process] === d.process && text(f[F.name]) === label), d.named[0]);
    });
    return make("li", {}, button);
  }));
  if (!shown.length) byId("sentences").append(make("li", { class: "muted" }, "None worth a sentence for this choice."));
}

/* Top-down */

const ROOT_COLORS = { retiring: "var(--c0)", bad_speculation: "var(--c5)", frontend: "var(--c4)", backend: "var(--c2)" };

function topDown() {
  const tree = data.top_down;
  byId("top-down").hidden = !tree;
  if (!tree) return;
  const row = tree.processes.find((entry) => entry.process === process);
  byId("top-down-lead").textContent = `Where the ${tree.width} slots of each cycle's commit went, exactly: ` +
    `${number(row.slots)} slots of ${row.name}. The line in a bar is the share from which the method (Yasin, ISPASS 2014) ` +
    "says to look closer, if the part it belongs to is over its own.";
  const line = (node) => {
    const share = row.shares[node.path] ?? 0;
    const closer = row.closer.includes(node.path);
    const limit = node.threshold === null ? "" : `, limit ${(100 * node.threshold).toFixed(0)} %`;
    return make("div", { class: `node l${node.level}${closer ? " closer" : ""}`, title: `${node.path}: ${(100 * share).toFixed(2)} % of the slots${limit}` },
      make("span", {}, node.name), make("span", { class: "number" }, percent(share)),
      make("div", { class: "track", "aria-hidden": "true" }, make("i", { style: `width:${(100 * share).toFixed(2)}%` }),
        node.threshold === null ? null : make("u", { style: `left:${100 * node.threshold}%` })),
      make("span", { class: "look" }, closer ? "look closer" : ""));
  };
  const below = (root) => tree.nodes.filter((node) => node.path === root.path || node.path.startsWith(root.path + "."));
  byId("tree").replaceChildren(...tree.nodes.filter((node) => node.level === 1)
    .map((root) => make("div", {}, ...below(root).map(line))));
  const roots = tree.nodes.map((node, index) => ({ ...node, index, color: ROOT_COLORS[node.path] }))
    .filter((node) => node.level === 1);
  overTime("time", "Top-down", roots, (window) => window.processes);
  const names = Object.fromEntries(tree.nodes.map((node) => [node.path, node.name]));
  const deepest = (closer) => closer.filter((path) => !closer.some((other) => other.startsWith(path + ".")));
  table(byId("tree-functions"), [
    { name: "Function", key: (f) => f.name },
    { name: "Slots", number: true, key: (f) => f.slots, sorted: true },
    ...roots.map((node) => ({ name: node.name + ", %", number: true, key: (f) => f.shares[node.path] ?? 0 })),
    { name: "Look closer at" },
  ], (f) => make("tr", {}, make("td", { class: "wide", title: f.name }, owner([f.process], 0) + f.name),
    make("td", { class: "number" }, number(f.slots)),
    ...roots.map((node) => make("td", { class: "number" }, percent(f.shares[node.path] ?? 0))),
    make("td", {}, deepest(f.closer).map((path) => names[path]).join(", "))))
    .show(tree.functions.filter((f) => process === 0 || f.process === process));
}

// Shares of `parts` ({ name, color, index }) in each window from the process's first to its last, one on the other; what
// it did not use of a window is left empty. `of` gives a window's shares by process.
function overTime(host, name, parts, of) {
  const windows = data.top_down.windows.filter((window) => window.cycles > 0 && of(window)[process]);
  if (!windows.length) return byId(host).replaceChildren();
  const [from, to] = [windows[0].start, windows[windows.length - 1].end];
  const svg = make("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img",
    "aria-label": `${name} over time, cycle ${number(from)} to ${number(to)}` });
  for (const window of windows) {
    const shares = of(window)[process];
    const x = 1000 * (window.start - from) / (to - from);
    const width = 1000 * (window.end - window.start) / (to - from);
    let bottom = 100;
    const group = make("g", {}, make("title", {}, `cycle ${number(window.start)}: ` +
      parts.map((part) => `${part.name} ${percent(shares[part.index])} %`).join(", ")));
    for (const part of parts) {
      const height = 100 * shares[part.index];
      bottom -= height;
      group.append(make("rect", { x: x.toFixed(2), y: bottom.toFixed(2), width: (width + 0.2).toFixed(2),
        height: height.toFixed(2), style: `fill:${part.color}` }));
    }
    svg.append(group);
  }
  byId(host).replaceChildren(make("h3", {}, "Over time"), legend(parts), svg, make("p", { class: "muted" },
    `${data.processes[process].name}, cycle ${number(from)} to ${number(to)}; ${process ? "empty: another process ran, or the hart slept" : "idle time within a window is left out"}.`));
}

/* Events */

function events() {
  const tea = data.tea;
  byId("events").hidden = !tea;
  if (!tea) return;
  const columns = tea.columns.filter((column) => data.columns[column.column].primary);
  const own = tea.processes.filter((row) => row.process === process);
  const largest = (stack) => Object.entries(stack).sort((a, b) => b[1] - a[1]);
  const head = (...names) => make("thead", {}, make("tr", {}, ...names.map((name, index) =>
    make("th", { scope: "col", class: index ? "number" : null }, name))));
  const cell = (share) => make("td", { class: "number" + (share ? "" : " zero") }, share === null ? "" : percent(share));
  if (!own.length) {
    byId("event-table").replaceChildren(make("p", { class: "muted", style: "padding:0 1rem" }, "Choose a process."));
  }
  for (const row of own) {
    const lines = largest(row.stack).map(([name, share]) => make("tr", {}, make("th", { scope: "row" }, name),
      oracleCell(share, 1), ...columns.map((column) => cell(row.stacks[column.name]?.[name] ?? 0))));
    const errors = ["instruction", "block", "function"].map((level) => make("tr", {},
      make("th", { scope: "row" }, `error by event and ${level}`), cell(null),
      ...columns.map((column) => cell(row.errors[column.name][level]))));
    byId("event-table").replaceChildren(make("table", {},
      head("Events", "Oracle, %", ...columns.map((column) => column.name)), make("tbody", {}, ...errors, ...lines)));
  }
  const first = columns[0]?.name;
  const parts = (stack) => largest(stack).map(([name, share]) => `${name} ${percent(share)}`).join(", ");
  const sum = (stack) => Object.values(stack).reduce((total, share) => total + share, 0);
  table(byId("event-instructions"), [
    { name: "Instruction", key: (row) => row.label },
    { name: "Disassembly", key: (row) => row.text },
    { name: "Oracle, %", number: true, key: (row) => sum(row.stack), sorted: true },
    { name: "by event", key: (row) => parts(row.stack) },
    { name: first ? `by ${first}` : "", key: (row) => parts(row.stacks[first] ?? {}) },
  ], (row) => make("tr", {}, make("td", { class: "wide", title: row.label }, owner([row.process], 0) + row.label),
    make("td", { class: "code asm", title: row.text }, row.text.replace("\t", " ")),
    make("td", { class: "number" }, percent(sum(row.stack))),
    ...[row.stack, row.stacks[first] ?? {}].map((stack) => make("td", { title: parts(stack) }, parts(stack)))))
    .show(tea.instructions.filter((row) => process === 0 || row.process === process));
}

/* Tables */

// Rows have shares of their process; together they are shown as shares of all cycles.
const scale = (row) => (process === 0 ? data.processes[row[0]].share : 1);

function profilerCells(row, fields, largest) {
  return primary.map((column) => {
    const share = scale(row) * row[fields.shares][column.at];
    const points = 100 * (share - scale(row) * row[fields.share]);
    const strength = Math.min(70, 70 * Math.sqrt(Math.abs(points) / 100 / (largest || 1)));
    return make("td", {
      class: "number " + (Math.abs(points) < 0.05 ? (share ? "" : "zero") : points > 0 ? "over" : "under"),
      style: Math.abs(points) < 0.05 ? null : `--d:${strength.toFixed(0)}`,
      title: `${column.label}: ${(100 * share).toFixed(3)} %, ${points >= 0 ? "+" : ""}${points.toFixed(3)} points`,
    }, percent(share));
  });
}

function oracleCell(share, largest) {
  return make("td", { class: "number oracle", style: `--w:${(100 * share / (largest || 1)).toFixed(1)}%` }, percent(share));
}

const CHUNK = 120;

// A table that is sorted by its column titles and grows as it is scrolled.
function table(host, columns, rowOf) {
  let rows = [];
  let shown = 0;
  let sort = { column: columns.findIndex((column) => column.sorted), down: true };
  const heads = columns.map((column, index) => {
    const inner = column.key ? make("button", { type: "button" }, column.name) : column.name;
    const head = make("th", { scope: "col", class: column.number ? "number" : null, title: column.title }, inner);
    if (column.key) inner.addEventListener("click", () => {
      sort = { column: index, down: sort.column === index ? !sort.down : Boolean(column.number) };
      order();
    });
    return head;
  });
  const body = make("tbody");
  host.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
  const more = () => {
    const next = rows.slice(shown, shown + CHUNK);
    shown += next.length;
    body.append(...next.map((row) => {
      const line = rowOf(row);
      line.tabIndex = -1;
      return line;
    }));
  };
  const order = () => {
    const { key, number: numeric } = columns[sort.column];
    heads.forEach((head, index) => {
      if (index === sort.column) head.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const sign = sort.down ? -1 : 1;
    rows = rows.map((row) => [key(row), row])
      .sort((a, b) => sign * (numeric ? a[0] - b[0] : a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)).map(([, row]) => row);
    body.replaceChildren();
    shown = 0;
    more();
    if (body.firstChild) body.firstChild.tabIndex = 0;
    host.scrollTop = 0;
  };
  host.onscroll = () => {
    if (shown < rows.length && host.scrollTop + 2 * host.clientHeight > host.scrollHeight) more();
  };
  body.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 };
    const line = event.target.closest("tr");
    if (!(event.key in steps) || !line || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const index = [...body.children].indexOf(line) + steps[event.key];
    while (index >= shown && shown < rows.length) more();
    const target = body.children[Math.max(0, Math.min(index, body.children.length - 1))];
    line.tabIndex = -1;
    target.tabIndex = 0;
    target.focus();
    target.scrollIntoView({ block: "nearest" });
  });
  return { show(list) { rows = list; order(); } };
}

function profilerColumns(fields) {
  return primary.map((column) => ({
    name: column.short, number: true, key: (row) => scale(row) * row[fields.shares][column.at],
    title: `Share by ${column.label}`,
  }));
}

function functionTable() {
  const rows = functionsOf();
  const largest = Math.max(0, ...rows.map((row) => scale(row) * row[F.share]));
  const columns = [
    { name: "Function", key: (row) => text(row[F.name]) },
    { name: "Module", key: (row) => data.modules[row[F.module]].path },
    { name: "Cycles", number: true, key: (row) => row[F.cycles], sorted: true },
    { name: "Oracle, %", number: true, key: (row) => scale(row) * row[F.share] },
    { name: "Cycle stack" },
    ...profilerColumns(F),
  ];
  const path = (row) => data.modules[row[F.module]].path;
  table(byId("function-table"), columns, (row) => {
    const name = owner(row, F.process) + text(row[F.name]);
    const link = make("button", { type: "button", class: "link", title: name }, name);
    link.addEventListener("click", () => open(data.functions.indexOf(row), null));
    return make("tr", {}, make("td", { class: "wide" }, link,
      ...row[F.missing].map((words) => make("div", { class: "muted missing", title: text(words) }, text(words)))),
      make("td", { class: "path", title: path(row) }, make("bdi", {}, path(row))),
      make("td", { class: "number" }, number(row[F.cycles])),
      oracleCell(scale(row) * row[F.share], largest),
      make("td", {}, miniStack(row[F.stack])),
      ...profilerCells(row, F, largest));
  }).show(rows);
}

let instructionTable = null;
let needles = null;

function showInstructions() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = data.instructions.filter((row) => process === 0 || row[I.process] === process);
  needles ??= new Map(data.instructions.map((row) => [row, [
    row[I.pc], text(row[I.label]), ...row[I.inlined].map(text), row[I.source] === null ? "" : text(row[I.source]),
    text(row[I.text]), data.processes[row[I.process]].name,
  ].join(" ").toLowerCase()]));
  const rows = words.length ? all.filter((row) => words.every((word) => needles.get(row).includes(word))) : all;
  const sum = rows.reduce((total, row) => total + scale(row) * row[I.share], 0);
  byId("matches").textContent = `${number(rows.length)} of ${number(all.length)} instructions` +
    `, ${percent(sum)} % of the cycles`;
  instructionTable.show(rows);
}

const file = (source) => source.slice(source.lastIndexOf("/") + 1);

function sourceCell(row) {
  const source = row[I.source] === null ? "" : text(row[I.source]);
  return make("td", { class: "path", title: source }, make("bdi", {}, file(source)));
}

function labelTitle(row) {
  return [...row[I.inlined].map((name) => text(name) + " (inlined)"), text(row[I.label])].join("\nin ");
}

function instructions() {
  const largest = Math.max(0, ...data.instructions
    .filter((row) => process === 0 || row[I.process] === process).map((row) => scale(row) * row[I.share]));
  const columns = [
    { name: "Instruction", key: (row) => owner(row, I.process) + text(row[I.function]) + row[I.pc].padStart(16, "0") },
    { name: "Disassembly", key: (row) => text(row[I.text]) },
    { name: "Source", key: (row) => (row[I.source] === null ? "" : file(text(row[I.source]))) },
    { name: "Cycles", number: true, key: (row) => row[I.cycles], sorted: true },
    { name: "Oracle, %", number: true, key: (row) => scale(row) * row[I.share] },
    { name: "Cycle stack" },
    ...profilerColumns(I),
  ];
  instructionTable = table(byId("instruction-table"), columns, (row) => {
    const line = make("tr", {},
      make("td", { class: "wide", title: "0x" + row[I.pc] + "\n" + labelTitle(row) },
        mark(row), owner(row, I.process) + text(row[I.label])),
      make("td", { class: "code asm", title: text(row[I.text]) }, text(row[I.text]).replace("\t", " ")),
      sourceCell(row),
      make("td", { class: "number" }, number(row[I.cycles])),
      oracleCell(scale(row) * row[I.share], largest),
      make("td", {}, miniStack(row[I.stack])),
      ...profilerCells(row, I, largest));
    const go = () => open(data.functions.findIndex((f) =>
      f[F.process] === row[I.process] && f[F.name] === row[I.function]), row[I.pc]);
    line.addEventListener("dblclick", go);
    line.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
    return line;
  });
  showInstructions();
}

/* Disassembly */

function listings() {
  const wanted = data.listings.map((listing, index) => [listing, index])
    .filter(([listing]) => process === 0 || data.functions[listing.function][F.process] === process);
  byId("listed").replaceChildren(...wanted.map(([listing, index]) => {
    const row = data.functions[listing.function];
    return make("option", { value: index }, `${owner(row, F.process)}${text(row[F.name])} (${percent(scale(row) * row[F.share])} %)`);
  }));
  showListing(null);
}

function showListing(chosen) {
  const listing = data.listings[byId("listed").value];
  const host = byId("listing-table");
  if (!listing) return host.replaceChildren(make("p", { class: "muted", style: "padding:0 1rem" }, "No listing for this choice."));
  const largest = Math.max(0, ...listing.rows.map(([, row]) => scale(row) * row[I.share]));
  const heads = ["Address", "Disassembly", "Source", "Cycles", "Oracle, %", "Cycle stack", ...primary.map((column) => column.short)];
  const numbers = new Set([3, 4, ...primary.map((_, index) => index + 6)]);
  let inside = null;
  let focus = null;
  let [hottest, most] = [null, 0];
  const body = make("tbody");
  for (const [flags, row, line] of listing.rows) {
    if (flags & 2) body.append(make("tr", { class: "gap" }, make("td", { colspan: heads.length }, "⋯")));
    const inlined = row[I.inlined].map(text).join(" in ");
    if (inlined && inlined !== inside) {
      body.append(make("tr", {}, make("td", {}), make("td", { class: "inline", colspan: heads.length - 1 }, "inlined " + inlined)));
    }
    inside = inlined;
    if (line !== null) {
      const at = text(row[I.source]);
      body.append(make("tr", { class: "source" }, make("td", { class: "code" }, at.slice(at.lastIndexOf(":") + 1)),
        make("td", { class: "code", colspan: heads.length - 1, title: at }, text(line))));
    }
    const shown = make("tr", { tabindex: -1, class: (flags & 1 ? "leader" : "") + (row[I.pc] === chosen ? " chosen" : "") },
      make("td", { class: "code", title: labelTitle(row) }, mark(row), row[I.pc]),
      make("td", { class: "code asm", title: text(row[I.text]) }, text(row[I.text]).replace("\t", " ")),
      sourceCell(row),
      make("td", { class: "number" }, number(row[I.cycles])),
      oracleCell(scale(row) * row[I.share], largest),
      make("td", {}, row[I.cycles] > 0 ? miniStack(row[I.stack]) : null),
      ...profilerCells(row, I, largest));
    if (row[I.pc] === chosen) focus = shown;
    if (most < row[I.cycles]) [hottest, most] = [shown, row[I.cycles]];
    body.append(shown);
  }
  host.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((name, index) =>
    make("th", { scope: "col", class: numbers.has(index) ? "number" : null }, name)))), body));
  if (focus) focus.focus({ preventScroll: true });
  // Without a choice, where the time went.
  const at = focus ?? hottest;
  host.scrollTop = at ? at.offsetTop - host.clientHeight / 2 : 0;
}

// Opens a function's listing; one without a listing filters the instructions instead.
function open(index, pc) {
  const listing = data.listings.findIndex((entry) => entry.function === index);
  const row = data.functions[index];
  if (listing < 0) {
    if (!row) return;
    byId("filter").value = text(row[F.name]);
    showInstructions();
    byId("instructions").scrollIntoView();
    return;
  }
  byId("listed").value = listing;
  showListing(pc);
  byId("listing").scrollIntoView();
}

/* Run */

// Nested settings by their dotted names, lists of plain values in one line.
function* settings(value, path) {
  if (value === null || typeof value !== "object") yield [path, String(value)];
  else if (Array.isArray(value) && value.every((entry) => entry === null || typeof entry !== "object")) {
    yield [path, value.join(", ")];
  } else {
    for (const [name, entry] of Object.entries(value)) yield* settings(entry, path ? `${path}.${name}` : name);
  }
}

function run() {
  byId("meta").append(...[...settings(data.meta ?? {}, "")].map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", { title: value }, value))));
  if (data.warnings.length) {
    byId("warnings").append(make("h3", {}, "Warnings"), make("ul", {}, ...data.warnings.map((line) => make("li", {}, line))));
  }
  const rows = [...data.modules].sort((a, b) => b.share - a.share).map((module) => make("tr", {},
    make("td", { title: module.file, class: "wide" }, module.path),
    make("td", { class: "number" }, percent(module.share)),
    make("td", { class: module.file ? "" : "zero" }, module.file ? "found" : "no file"),
    make("td", { class: "code zero", title: module.build_id }, (module.build_id || "").slice(0, 12))));
  byId("modules").append(make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "Module"),
    make("th", { class: "number" }, "cycles, %"), make("th", {}, "Symbols"), make("th", {}, "Build ID"))), make("tbody", {}, ...rows)));
}

function refresh() {
  errors();
  sentences();
  stacks();
  topDown();
  events();
  functionTable();
  instructions();
  listings();
}

header();
errorLegend();
byId("stack-legend").append(legend(categories));
run();
refresh();
byId("process").addEventListener("change", (event) => { process = Number(event.target.value); refresh(); });
let pending = 0;
byId("filter").addEventListener("input", () => { clearTimeout(pending); pending = setTimeout(showInstructions, 120); });
byId("listed").addEventListener("change", () => showListing(null));
byId("accused").addEventListener("change", sentences);

// Goes to the next section, or the one before: `step` 1 or -1.
function section(step) {
  const shown = [...document.querySelectorAll("main > section")].filter((entry) => !entry.hidden);
  const top = (entry) => entry.getBoundingClientRect().top;
  const line = document.querySelector("nav").getBoundingClientRect().bottom + 24;
  const target = step > 0 ? shown.find((entry) => top(entry) > line) : shown.findLast((entry) => top(entry) < line - 48);
  if (!target) return;
  target.scrollIntoView();
  const heading = target.querySelector("h2");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
document.addEventListener("keydown", (event) => {
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.altKey || event.ctrlKey || event.metaKey) return;
  const act = { "/": () => byId("filter").focus(), p: () => byId("process").focus(), "]": () => section(1), "[": () => section(-1) }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
// Those who test the page can tell that it was built.
document.documentElement.dataset.ready = "yes";
