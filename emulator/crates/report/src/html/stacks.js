/* Cycle stacks, top-down and events */

function stackBar(stack, parts) {
  const total = sum(stack);
  return make("div", { class: "stack", role: "img", title: stackTitle(stack, parts), style: `background-image:${gradient(stack, total, parts)}`,
    "aria-label": stackTitle(stack, parts).replaceAll("\n", ", ") });
}

// The published stack: what a full store queue takes is the front end's there.
const published = (stack) => data.categories.map((name) => {
  const part = (wanted) => stack[data.names.parts.indexOf(wanted)] ?? 0;
  return part(name) + (name === "Front-end" ? part(STORE_QUEUE) : 0);
});

function stacks() {
  const process = data.processes[chosen.process];
  const ranged = rangeStack(chosen.process);
  const whole = ranged ? sum(rangeStack(0)) || 1 : 1;
  const row = (name, share, stack) => make("div", { class: "stack-row" },
    make("div", { class: "name", title: name }, brief(name, 44)),
    make("div", { class: "number" }, percent(share) + " %"), stackBar(stack, CATEGORIES));
  const others = data.processes.map((_, at) => at).filter((at) => at > 0 && chosen.process === 0);
  const byFunction = !ranged || (chosen.process > 0 && rangeSums() !== null);
  const lines = byFunction
    ? functionsOf().filter((f) => cyclesOf(f, F) > 0).sort((a, b) => cyclesOf(b, F) - cyclesOf(a, F)).slice(0, 14)
      .map((f) => row(owner(f[F.process]) + text(f[F.name]), shareOf(f, F), published(f[F.stack])))
    : others.map((at) => /** @type {[number, any]} */ ([at, rangeStack(at)])).filter(([, stack]) => sum(stack) > 0).sort((a, b) => sum(b[1]) - sum(a[1])).slice(0, 14)
      .map(([at, stack]) => row(data.processes[at].name, sum(stack) / whole, stack));
  byId("stack-bars").replaceChildren(
    row(ranged ? process.name : `${process.name} (class: ${process.class})`, ranged ? sum(ranged) / whole : process.share, ranged ?? process.stack), ...lines);
  byId("stack-lead").textContent = "What the commit stage did or waited for, by the Oracle, in the categories of the TIP paper: " +
    `${ranged ? "the chosen range of time" : "the program"}, then its ${byFunction ? "functions" : "processes"}` +
    (ranged && byFunction ? ", whose time is split as in the whole run" : "") + ". Cycles that a full store queue takes count as Front-end here, as published.";
}

const ROOT_COLORS = { retiring: "var(--c0)", bad_speculation: "var(--c5)", frontend: "var(--c4)", backend: "var(--c2)" };

// The tree of the chosen process in the chosen range.
function rangeRow(tree) {
  if (!chosen.range) return null;
  const slots = tree.nodes.map(() => 0);
  for (const window of windows().filter(inRange)) {
    window.processes[chosen.process]?.forEach((share, at) => { slots[at] += share * window.cycles * tree.width; });
  }
  const total = sum(slots.filter((_, at) => tree.nodes[at].level === 1)) || 1;
  const shares = Object.fromEntries(tree.nodes.map((node, at) => [node.path, slots[at] / total]));
  const closer = [];
  for (const node of tree.nodes) {
    const above = node.path.slice(0, Math.max(0, node.path.lastIndexOf(".")));
    if (node.threshold !== null && shares[node.path] > node.threshold && (!above || closer.includes(above))) closer.push(node.path);
  }
  return { name: data.processes[chosen.process].name, slots: total, shares, closer };
}

function topDown() {
  const tree = data.top_down;
  byId("top-down").hidden = !tree;
  if (!tree) return;
  const row = rangeRow(tree) ?? tree.processes.find((entry) => entry.process === chosen.process);
  byId("top-down-lead").textContent = `Where the ${tree.width} slots of each cycle's commit went, exactly: ` +
    `${number(row.slots)} slots of ${row.name}. The line in a bar is the share from which the method (Yasin, ISPASS 2014) ` +
    "says to look closer, if the part it belongs to is over its own.";
  const line = (node) => {
    const share = row.shares[node.path] ?? 0;
    const closer = row.closer.includes(node.path);
    const limit = node.threshold === null ? "" : `, limit ${(100 * node.threshold).toFixed(0)} %`;
    const margin = row.margins?.[node.path]?.within_95;
    const chance = margin === undefined ? "" : ` ± ${(100 * margin).toFixed(2)}`;
    return make("div", { class: `node l${node.level}${closer ? " closer" : ""}`, title: `${node.path}: ${(100 * share).toFixed(2)}${chance} % of the slots${limit}` },
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
  const chart = overTime("Top-down", roots, (window) => window.processes);
  byId("time").replaceChildren(...(chart ? [make("h3", {}, "Over time"), legend(roots), chart.svg] : []));
  const names = Object.fromEntries(tree.nodes.map((node) => [node.path, node.name]));
  const deepest = (closer) => closer.filter((path) => !closer.some((other) => other.startsWith(path + ".")));
  const lookCloser = (f) => {
    const words = deepest(f.closer).map((path) => names[path]).join(", ");
    return make("td", { title: words }, words);
  };
  table(byId("tree-functions"), [
    { name: "Function", key: (f) => f.name },
    { name: "Slots", number: true, key: (f) => f.slots, sorted: true, width: "8.5rem" },
    ...roots.map((node) => ({ name: node.name + ", %", number: true, width: "8.25rem", key: (f) => f.shares[node.path] ?? 0 })),
    { name: "Look closer at", width: "14rem" },
  ], (f) => make("tr", {}, make("td", { title: f.name }, owner(f.process) + brief(f.name)),
    make("td", { class: "number" }, number(f.slots)),
    ...roots.map((node) => make("td", { class: "number" }, percent(f.shares[node.path] ?? 0))),
    lookCloser(f)))
    .show(tree.functions.filter((f) => ofProcess(f.process)));
}

function events() {
  const tea = data.tea;
  byId("events").hidden = !tea;
  if (!tea) return;
  const columns = tea.columns.filter((column) => data.columns[column.column].primary);
  const own = tea.processes.filter((row) => row.process === chosen.process);
  const largest = (stack) => Object.entries(stack).sort((a, b) => b[1] - a[1]);
  const head = (...names) => make("thead", {}, make("tr", {}, ...names.map((name, index) =>
    make("th", { scope: "col", class: index ? "number" : null }, name))));
  const cell = (share) => make("td", { class: "number" + (share ? "" : " zero") }, share === null ? "" : percent(share));
  if (!own.length) {
    byId("event-table").replaceChildren(make("p", { class: "muted empty" }, "Choose a process."));
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
  const total = (stack) => sum(Object.values(stack));
  table(byId("event-instructions"), [
    { name: "Instruction", key: (row) => row.label },
    { name: "Disassembly", key: (row) => row.text, width: "14rem" },
    { name: "Oracle, %", number: true, key: (row) => total(row.stack), sorted: true, width: "5.5rem" },
    { name: "by event", key: (row) => parts(row.stack), width: "17rem" },
    { name: first ? `by ${first}` : "", width: "17rem", key: (row) => parts(row.stacks[first] ?? {}) },
  ], (row) => make("tr", {}, make("td", { title: row.label }, owner(row.process) + brief(row.label)),
    make("td", { class: "code", title: row.text }, row.text.replace("\t", " ")),
    make("td", { class: "number" }, percent(total(row.stack))),
    ...[row.stack, row.stacks[first] ?? {}].map((stack) => make("td", { title: parts(stack) }, parts(stack)))))
    .show(tea.instructions.filter((row) => ofProcess(row.process)));
}
