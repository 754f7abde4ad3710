/* Two runs: what changed, as tables and as a differential flame graph */

const { comparison } = data;
const view = { by: data.flame.callers.length ? "callers" : "lines", width: "after", process: "", words: "", trees: {} };
const signed = (value, show) => (value > 0 ? "+" : value < 0 ? "−" : "") + show(Math.abs(value));
const change = (before, after) => (!before ? (after ? "new" : "") : !after ? "gone"
  : signed(after / before - 1, (value) => (100 * value).toFixed(1) + " %"));
// How a change is painted: code of one run only is neither slower nor faster.
const kindOf = (before, after) => (!before !== !after ? "once" : after > before ? "over" : "under");
// By how much to sort a relative change: what is new comes first.
const ratio = (before, after) => (before ? after / before : after ? Infinity : 0);

const beforeOf = (node) => sum(node.values);
const widthOf = (node) => (view.width === "after" ? node.total : beforeOf(node));
function treeRoot() {
  const all = view.trees[view.by] ??= flameTree(data.flame[view.by], data.flame.names, PART_COUNT);
  return (view.process && all.below.find((node) => node.name === view.process)) || all;
}
// Share of a change from which on a part of it is named, and strength from which on a change is painted.
const NAMED_PART = 0.05;
const LEAST_STRENGTH = 0.02;
function nodeTitle(node) {
  const before = beforeOf(node);
  const parts = PARTS.map((part) => /** @type {[string, number]} */ ([part.name, node.stack[part.index] - node.values[part.index]]))
    .filter(([, delta]) => Math.abs(delta) >= NAMED_PART * Math.abs(node.total - before) && Math.round(delta))
    .map(([name, delta]) => `${name} ${signed(delta, number)}`);
  return [node.name, `${number(before)} cycles before, ${number(node.total)} after: ${signed(node.total - before, number)} (${change(before, node.total) || "0"})`,
    ...parts].join("\n");
}
// As strong as the change is large beside the whole; a twentieth of it is full strength.
function paintChange(node) {
  const delta = node.total - beforeOf(node);
  const root = treeRoot();
  const strength = Math.min(1, Math.sqrt(20 * Math.abs(delta) / Math.max(root.total, beforeOf(root), 1)));
  if (strength < LEAST_STRENGTH) return "none";
  const kind = kindOf(beforeOf(node), node.total);
  if (kind === "once") {
    const color = "color-mix(in srgb, var(--muted) 30%, transparent)";
    return `repeating-linear-gradient(-45deg,${color} 0 4px,transparent 4px 8px)`;
  }
  const color = `color-mix(in srgb, var(--${kind}) ${(100 * strength).toFixed(0)}%, transparent)`;
  return `linear-gradient(${color},${color})`;
}
const ofWords = (name) => hasWords(lower(name), wordsOf(view.words));
function bright(node) {
  for (let at = node; at; at = at.above) if (ofWords(at.name)) return true;
  return false;
}
function detail(node) {
  const [name, ...rest] = nodeTitle(node).split("\n");
  byId("flame-detail").replaceChildren(make("b", { class: "name", title: name }, name), ...rest.map((line) => make("span", {}, line)));
}

// Commands whose processes are shown.
const opened = new Set();
const processTitle = ({ process, count, before, after }) => {
  if (!count || Math.max(...count) < 2) return process;
  return `${process} (${count[0] === count[1] ? count[0] : `${count[0]} → ${count[1]}`} processes)`;
};
// What is before, after, and the change of both, as cells.
function changeCells(before, after, most) {
  const delta = after - before;
  const strength = (70 * Math.sqrt(Math.abs(delta) / (most || 1))).toFixed(0);
  return [make("td", { class: "number" }, number(before)), make("td", { class: "number" }, number(after)),
    make("td", { class: "number " + (delta ? kindOf(before, after) : ""), style: `--d:${strength}` }, signed(delta, number)),
    make("td", { class: "number" }, change(before, after))];
}
// Columns of these cells; `of` gives a row's values. Processes of a command stay with it, however the table is sorted.
const changeColumns = (of) => [
  { name: "Before", number: true, key: (row) => of(row.parent ?? row)[0], width: "8.5rem" },
  { name: "After", number: true, key: (row) => of(row.parent ?? row)[1], width: "8.5rem" },
  { name: "Change", number: true, key: (row) => Math.abs(of(row.parent ?? row)[1] - of(row.parent ?? row)[0]), sorted: true, width: "8.5rem" },
  { name: "%", number: true, key: (row) => ratio(...of(row.parent ?? row)), width: "6rem" },
];

// Cycles of a sampled run are estimates.
const sampled = comparison.sampled?.length > 0;
const isByChance = (row) => row.margin != null && Math.abs(row.after - row.before) <= row.margin;

function changes(id, rows, name) {
  const wanted = rows.filter((row) => (!view.process || row.process === view.process) && ofWords([row.process, row.name, row.place].join(" ")));
  const most = rows.reduce((largest, row) => Math.max(largest, Math.abs(row.after - row.before)), 0) || 1;
  const largest = (row) => {
    const parts = comparison.categories.map((category, at) => [category, row.stack[at] ?? 0]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    return parts.filter(([, delta]) => Math.round(delta)).slice(0, 2).map(([category, delta]) => `${category} ${signed(delta, compact)}`).join(", ");
  };
  const flat = () => wanted.flatMap((row) => [row,
    ...(opened.has(row.process) ? (row.members ?? []).map((member) => ({ ...member, parent: row })) : [])]);
  const of = (row) => [row.before, row.after];
  const toggle = (row, at) => {
    if (!row.members?.length || name) return;
    if (!opened.delete(row.process)) opened.add(row.process);
    shown.show(flat());
    shown.reveal(shown.rows().findIndex((other) => other.process === row.process && !other.parent), at !== undefined);
  };
  const title = (row) => {
    // Two spaces are between an instruction's place and its text.
    if (name) return [row.name.split("  ").map((part, at) => (at ? part : brief(part))).join("  ")];
    if (row.parent) return [make("span", { class: "twist" }), make("span", { class: "twist" }), row.process];
    const twist = row.members?.length ? (opened.has(row.process) ? "▾" : "▸") : "";
    return [make("span", { class: "twist" }, twist), processTitle(row)];
  };
  const shown = table(byId(id), [
    ...(name ? [{ name, key: (row) => row.name }, { name: "Process", key: (row) => row.process, width: "7rem" }]
      : [{ name: "Process", key: (row) => (row.parent ?? row).process }]),
    ...changeColumns(of),
    ...(sampled ? [{ name: "± 95 %", number: true, key: (row) => row.margin ?? 0, width: "7rem", title: "By chance, the change is off by no more for 95 % of seeds" }] : []),
    { name: "Mostly", width: "18rem" },
  ], (row) => {
    const line = make("tr", {}, make("td", { title: [row.name || row.process, row.place].join("\n") }, ...title(row)),
      name ? make("td", { title: row.process }, row.process) : null,
      ...changeCells(row.before, row.after, most),
      sampled ? make("td", { class: "number" }, row.parent ? "" : row.margin == null ? "?" : number(row.margin)) : null,
      make("td", { title: largest(row) }, isByChance(row) ? "within chance" : largest(row)));
    line.addEventListener("click", () => toggle(row));
    return line;
  }, {
    label: name || "Processes",
    keydown: (event, row, at) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(row, at); } },
  });
  shown.show(flat());
}

// Waits of both runs: a row's title, and its values before and after.
function waits(id, rows, name, titleOf, of, last) {
  const wanted = rows.filter((row) => (!view.process || row.process === view.process || row.process === "all")
    && ofWords([row.process, row.name].join(" ")));
  const most = rows.reduce((largest, row) => Math.max(largest, Math.abs(of(row)[1] - of(row)[0])), 0);
  table(byId(id), [{ name, key: titleOf }, ...changeColumns(of), { name: last.name, number: true, width: "13rem", key: last.key }],
    (row) => make("tr", {}, make("td", { title: titleOf(row) }, titleOf(row)), ...changeCells(...of(row), most),
      make("td", { class: "number" }, last.show(row))), { label: name }).show(wanted);
}
function waiting() {
  const found = comparison.waiting;
  byId("waiting").hidden = !found;
  if (!found) return;
  const arrow = (before, after) => `${compact(before)} → ${compact(after)}`;
  const time = (row, of) => [row.before?.[of] ?? 0, row.after?.[of] ?? 0];
  const thread = (row) => (!row.name || row.name === row.process ? row.process : `${row.process}: ${row.name}`);
  waits("thread-table", found.threads, "Thread, waiting", thread, (row) => time(row, "waiting"),
    { name: "Ready", key: (row) => time(row, "ready")[1] - time(row, "ready")[0], show: (row) => arrow(...time(row, "ready")) });
  const title = (row) => `${row.process}: ${row.name}`;
  const count = { name: "Times", key: (row) => row.after.count - row.before.count, show: (row) => arrow(...time(row, "count")) };
  waits("reason-table", found.reasons, "Reason", title, (row) => time(row, "cycles"), count);
  byId("futex-title").hidden = byId("futex-table").hidden = found.futexes.length === 0;
  waits("futex-table", found.futexes, "Futex", title, (row) => time(row, "cycles"), count);
}

const graph = flameGraph(byId("flame-graph"), {
  root: treeRoot, value: widthOf, matches: bright, title: nodeTitle, paint: paintChange, chosen: detail, open: () => {},
});
function refresh() {
  graph.draw();
  detail(treeRoot());
  waiting();
  changes("process-table", comparison.processes, "");
  changes("function-table", comparison.functions, "Function");
  changes("instruction-table", comparison.instructions, "Instruction");
}

const { before, after } = comparison;
const busy = (totals) => totals.cycles - totals.idle;
for (const [which, run] of [["before", comparison.runs[0]], ["after", comparison.runs[1]]]) {
  const facts = [run.core, run.harts === 1 ? "1 hart" : `${run.harts} harts`, run.when].filter(Boolean).join(", ");
  const what = (run.command ?? run.name ?? "?").trim().split("\n").join("; ");
  byId("runs").append(make("dt", {}, which), make("dd", {}, `${run.folder}: ${what} (${facts})`));
}
if (comparison.differences?.length) byId("runs").append(make("dt", {}, "differ in"), make("dd", {}, comparison.differences.join(", ")));
const elapsed = before.elapsed && after.elapsed ? [before.elapsed, after.elapsed] : null;
if (elapsed) {
  const ms = elapsed.map((time) => time.ms);
  const known = ms.every((time) => time != null);
  const values = known ? ms.map((time) => time.toFixed(3)).join(" → ") + " ms" : elapsed.map((time) => compact(time.cycles)).join(" → ");
  const title = elapsed.map((time) => number(time.cycles)).join(" → ") + " cycles";
  byId("tiles").append(make("div", { class: "tile", title }, make("b", {}, values),
    make("span", {}, `${known ? "" : "cycles "}elapsed: ${change(elapsed[0].cycles, elapsed[1].cycles)}`)));
}
for (const [name, was, is] of [["cycles, not idle", busy(before), busy(after)], ["instructions", before.instructions, after.instructions]]) {
  const margin = name === "cycles, not idle" && comparison.margin != null ? ` (± ${compact(comparison.margin)} by chance)` : "";
  byId("tiles").append(make("div", { class: "tile" }, make("b", {}, `${compact(was)} → ${compact(is)}`), make("span", {}, `${name}: ${change(was, is)}${margin}`)));
}
if (comparison.renamed) {
  byId("subtitle").textContent = `${comparison.renamed[0]} and ${comparison.renamed[1]} may be the same program: --map ${comparison.renamed[0]}=${comparison.renamed[1]} compares them.`;
}
byId("process").append(make("option", { value: "" }, "all"), ...comparison.processes.filter((row) => row.process !== "all")
  .map((row) => make("option", { value: row.process }, row.process)));
const select = (id, act) => byId(id).addEventListener("change", () => { act(byId(id).value); refresh(); });
for (const [value, name] of [["callers", "callers"], ["lines", "module, function, line"]]) {
  if (data.flame[value].length) byId("flame-by").append(make("option", { value }, name));
}
select("flame-by", (value) => { view.by = value; });
select("flame-width", (value) => { view.width = value; });
select("process", (value) => { view.process = value; });
byId("filter").addEventListener("input", () => { view.words = byId("filter").value.trim(); refresh(); });
byId("flame-top").addEventListener("click", () => graph.top());
byId("help-button").addEventListener("click", help);
const nextTheme = theme();
keys.push(["?", "this list", help], ["/", "filter by words", () => byId("filter").focus()],
  ["p", "choose a process", () => byId("process").focus()], ["]", "next section", () => section(1)],
  ["[", "section before", () => section(-1)], ["d", "light, dark, or as the system", nextTheme],
  ["↑ ↓ ← →", "flame graph: up, down, to the sides; tables: move", null], ["Enter", "flame graph: zoom in", null],
  ["Esc", "flame graph: zoom out", null]);
sectionLinks();
refresh();
document.documentElement.dataset.ready = "yes";
