/* The chosen range of time: the Oracle by function, instruction and node of the flame graph in it */

// First cycle of each stretch of time that is kept, and the first after it; a range is made of whole ones.
const bins = data.over_time ?? [];
// `of`: the range that `sums` are of; `followed`: what the flame graph follows; `by`: what it was by before.
const range = { of: null, sums: null, followed: null, by: null };

// Cycles in the chosen range; null without one, if nothing is kept over time, or before the page is whole.
function rangeSums() {
  if (!chosen.range || !bins.length) return null;
  if (range.of === chosen.range) return range.sums;
  const time = block("over-time-data", (parsed) => parsed);
  if (!time) return null;
  const sums = {
    items: new Float64Array(time.process.length), processes: new Float64Array(data.processes.length),
    functions: new Float64Array(data.functions.length), nodes: new Float64Array(data.flame.lines.length),
  };
  bins.forEach(([start, end], at) => {
    if (start < chosen.range[0] || end > chosen.range[1]) return;
    let item = 0;
    const list = time.cycles[at];
    for (let pair = 0; pair < list.length; pair += 2) {
      item += list[pair];
      sums.items[item] += list[pair + 1];
    }
  });
  sums.items.forEach((cycles, item) => {
    sums.processes[time.process[item]] += cycles;
    sums.processes[0] += cycles;
    if (time.node[item]) sums.nodes[time.node[item] - 1] += cycles;
    if (time.function[item] >= 0) sums.functions[time.function[item]] += cycles;
  });
  Object.assign(range, { of: chosen.range, sums });
  return sums;
}

// Cycles of a row in the chosen range, or in the whole run; and its share of the chosen process's, or of all.
function cyclesOf(row, fields) {
  const sums = rangeSums();
  if (!sums) return row[fields.cycles];
  return (fields === F ? sums.functions[indexOf.get(row)] : sums.items[row[I.item]]) ?? 0;
}
function shareOf(row, fields) {
  const sums = rangeSums();
  return sums ? cyclesOf(row, fields) / (sums.processes[chosen.process] || 1) : scale(row) * row[fields.share];
}
// Without a range those without time have a row, too: profilers may name them.
const hasTime = (row, fields) => !rangeSums() || cyclesOf(row, fields) > 0;

// Nodes of the flame graph by module, function and line with their cycles in the chosen range, split as in the whole run.
function rangeNodes(nodes) {
  const sums = rangeSums();
  return nodes.map((node, at) => {
    const own = sum(node[N.stack]);
    const copy = [...node];
    // One of less than a cycle in each part is not split.
    copy[N.stack] = node[N.stack].map((cycles, part) => (own ? cycles * sums.nodes[at] / own : part ? 0 : sums.nodes[at]));
    copy[N.columns] = [];
    return copy;
  });
}

// Where the range has changed, the flame graph follows; by callers it cannot, and so makes way.
function followRange() {
  if (range.followed === chosen.range) return;
  range.followed = chosen.range;
  if (!chosen.range) range.of = range.sums = null;
  flame.trees = {};
  opened.clear();
  if (chosen.range && bins.length && flame.by === "callers" && !chosen.thread && !range.by) {
    range.by = flame.by;
    flame.by = "lines";
  } else if (!chosen.range && range.by) {
    flame.by = range.by;
    range.by = null;
  }
  byId("flame-by").value = flame.by;
}

// Beside each section's heading what of the time it shows, while a range is chosen.
const FOLLOWING_SECTIONS = ["functions", "code", "instructions", "stacks", "top-down"];
function scopes() {
  for (const section of document.querySelectorAll("main > section")) {
    const heading = section.querySelector("h2");
    if (!heading || section.id === "timeline") continue;
    heading.querySelector(".scope")?.remove();
    if (!chosen.range) continue;
    const own = FOLLOWING_SECTIONS.indexOf(section.id);
    const follows = section.id === "flame" ? flameFollows() : own >= 3 ? windows().length > 0 : own >= 0 && bins.length > 0;
    heading.append(make("span", { class: follows ? "scope follows" : "scope" }, follows ? "of the chosen range" : "whole run"));
  }
}

function rangeNotes() {
  if (!chosen.range) return [];
  const sums = rangeSums();
  if (!sums) return ["Of this range of time: processes, cycle stacks, top-down. Of the whole run: everything else."];
  const listed = chosen.process
    ? sum(data.functions.map((row, at) => (row[F.process] === chosen.process ? sums.functions[at] : 0))) : sum(sums.functions);
  const rest = Math.max(0, 1 - listed / (sums.processes[chosen.process] || 1));
  const notes = ["Of this range of time, by the Oracle: processes, flame graph and call tree by module, function and line, functions, " +
    "source and disassembly, instructions, cycle stacks, top-down. How a function, line or instruction splits its time is that of the whole run. " +
    "Of the whole run: flame graph by callers, profilers, and sections that say so."];
  if (rest >= 0.0005) notes.push(`${percent(rest)} % of the range's time is of instructions with too little of it to be kept apart.`);
  if (harts.count > 1 && harts.own === "all") notes.push("Harts begin their stretches of time at different cycles: a range of all is right to within one. Each hart's page is exact.");
  return notes;
}
