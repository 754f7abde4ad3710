/* Two runs: what changed, as tables and as a differential flame graph */

const { comparison } = data;
const view = { by: data.flame.callers.length ? "callers" : "lines", width: "after", process: "", words: "", trees: {} };
const signed = (value, show) => (value > 0 ? "+" : value < 0 ? "−" : "") + show(Math.abs(value));
const change = (before, after) => (before ? signed(after / before - 1, (value) => (100 * value).toFixed(1) + " %") : after ? "new" : "");

const beforeOf = (node) => sum(node.values);
const widthOf = (node) => (view.width === "after" ? node.total : beforeOf(node));
function treeRoot() {
  const all = view.trees[view.by] ??= flameTree(data.flame[view.by], data.flame.names, 8);
  return (view.process && all.below.find((node) => node.name === view.process)) || all;
}
function nodeTitle(node) {
  const before = beforeOf(node);
  const parts = PARTS.map((part) => [part.name, node.stack[part.index] - node.values[part.index]])
    .filter(([, delta]) => Math.abs(delta) >= 0.05 * Math.abs(node.total - before) && Math.round(delta))
    .map(([name, delta]) => `${name} ${signed(delta, number)}`);
  return [node.name, `${number(before)} cycles before, ${number(node.total)} after: ${signed(node.total - before, number)} (${change(before, node.total) || "0"})`,
    ...parts].join("\n");
}
// As strong as the change is large beside the whole; a twentieth of it is full strength.
function paintChange(node) {
  const delta = node.total - beforeOf(node);
  const root = treeRoot();
  const strength = Math.min(1, Math.sqrt(20 * Math.abs(delta) / Math.max(root.total, beforeOf(root), 1)));
  if (strength < 0.02) return "none";
  const color = `color-mix(in srgb, var(--${delta > 0 ? "over" : "under"}) ${(100 * strength).toFixed(0)}%, transparent)`;
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

function changes(id, rows, name) {
  const wanted = rows.filter((row) => (!view.process || row.process === view.process) && ofWords([row.process, row.name, row.place].join(" ")));
  const most = rows.reduce((largest, row) => Math.max(largest, Math.abs(row.after - row.before)), 0) || 1;
  const largest = (row) => {
    const parts = comparison.categories.map((category, at) => [category, row.stack[at] ?? 0]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    return parts.filter(([, delta]) => Math.round(delta)).slice(0, 2).map(([category, delta]) => `${category} ${signed(delta, compact)}`).join(", ");
  };
  table(byId(id), [
    ...(name ? [{ name, key: (row) => row.name }, { name: "Process", key: (row) => row.process, width: "7rem" }] : [{ name: "Process", key: (row) => row.process }]),
    { name: "Before", number: true, key: (row) => row.before, width: "6.8rem" },
    { name: "After", number: true, key: (row) => row.after, width: "6.8rem" },
    { name: "Change", number: true, key: (row) => Math.abs(row.after - row.before), sorted: true, width: "6.8rem" },
    { name: "%", number: true, key: (row) => row.after / (row.before || 1), width: "5rem" },
    { name: "Mostly", width: "12rem" },
  ], (row) => {
    const delta = row.after - row.before;
    const strength = (70 * Math.sqrt(Math.abs(delta) / most)).toFixed(0);
    return make("tr", {}, make("td", { title: [row.name || row.process, row.place].join("\n") }, row.name || row.process),
      name ? make("td", {}, row.process) : null,
      make("td", { class: "number" }, number(row.before)), make("td", { class: "number" }, number(row.after)),
      make("td", { class: "number " + (delta > 0 ? "over" : "under"), style: `--d:${strength}` }, signed(delta, number)),
      make("td", { class: "number" }, change(row.before, row.after)), make("td", { title: largest(row) }, largest(row)));
  }, { label: name || "Processes" }).show(wanted);
}

const graph = flameGraph(byId("flame-graph"), {
  root: treeRoot, value: widthOf, matches: bright, title: nodeTitle, paint: paintChange, chosen: detail, open: () => {},
});
function refresh() {
  graph.draw();
  detail(treeRoot());
  changes("process-table", comparison.processes, "");
  changes("function-table", comparison.functions, "Function");
  changes("instruction-table", comparison.instructions, "Instruction");
}

const { before, after } = comparison;
const busy = (totals) => totals.cycles - totals.idle;
for (const [name, was, is] of [["cycles, not idle", busy(before), busy(after)], ["instructions", before.instructions, after.instructions]]) {
  byId("tiles").append(make("div", { class: "tile" }, make("b", {}, `${compact(was)} → ${compact(is)}`), make("span", {}, `${name}: ${change(was, is)}`)));
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
