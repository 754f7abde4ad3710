/* The chosen range of time: the Oracle by function, instruction and node of the flame graph in it */

// First cycle of each stretch of time that is kept, and the first after it; a range is made of whole ones.
const bins = data.over_time ?? [];
// `of`: the range that `sums` are of; `followed`: what the flame graph follows.
/** @type {RangeState} */
const range = { of: null, sums: null, followed: null };

// Adds the amounts of a bin: numbers, each as the distance to the one before, and amounts in turn.
function addAmounts(sums, list) {
  let at = 0;
  for (let pair = 0; pair < list.length; pair += 2) {
    at += list[pair];
    sums[at] += list[pair + 1];
  }
}

// Cycles in the chosen range; null without one, if nothing is kept over time, or before the page is whole.
function rangeSums() {
  if (!chosen.range || !bins.length) return null;
  if (range.of === chosen.range) return range.sums;
  const time = block("over-time-data", (parsed) => parsed);
  if (!time) return null;
  // Nodes by their indices plus one.
  const sums = {
    items: new Float64Array(time.process.length), processes: new Float64Array(data.processes.length),
    functions: new Float64Array(data.functions.length), lines: new Float64Array(data.flame.lines.length + 1),
    callers: new Float64Array(data.flame.callers.length + 1), otherCallers: new Float64Array(data.processes.length),
  };
  const [first, last] = chosen.range;
  bins.forEach(([start, end], at) => {
    if (start < first || end > last) return;
    addAmounts(sums.items, time.cycles[at]);
    addAmounts(sums.callers, time.callers[at] ?? []);
    addAmounts(sums.otherCallers, time.other_callers[at] ?? []);
  });
  sums.items.forEach((cycles, item) => {
    sums.processes[time.process[item]] += cycles;
    sums.processes[0] += cycles;
    sums.lines[time.node[item]] += cycles;
    if (time.function[item] >= 0) sums.functions[time.function[item]] += cycles;
  });
  Object.assign(range, { of: chosen.range, sums });
  return sums;
}

// Cycles of a row in the chosen range, or in the whole run; and its share of the chosen process's, or of all.
function cyclesOf(row, fields) {
  const sums = rangeSums();
  if (!sums) return row[fields.cycles];
  return (fields === F ? sums.functions[indexOf.get(row) ?? -1] : sums.items[row[I.item]]) ?? 0;
}
function shareOf(row, fields) {
  const sums = rangeSums();
  return sums ? cyclesOf(row, fields) / (sums.processes[chosen.process] || 1) : scale(row) * row[fields.share];
}
// Without a range those without time have a row, too: profilers may name them.
const hasTime = (row, fields) => !rangeSums() || cyclesOf(row, fields) > 0;

// Nodes of the flame graph with their cycles in the chosen range, split as in the whole run.
function rangeNodes(nodes, cyclesOfNodes) {
  // What is below a node splits the time of one that has none of its own in the whole run.
  const below = new Float64Array(PART_COUNT * nodes.length);
  for (let at = nodes.length - 1; at >= 0; at -= 1) {
    nodes[at][N.stack].forEach((cycles, part) => { below[PART_COUNT * at + part] += cycles; });
    const above = nodes[at][N.above] - 1;
    for (let part = 0; part < PART_COUNT && above >= 0; part += 1) below[PART_COUNT * above + part] += below[PART_COUNT * at + part];
  }
  return nodes.map((node, at) => {
    const cycles = cyclesOfNodes[at + 1];
    const split = sum(node[N.stack]) ? node[N.stack] : below.subarray(PART_COUNT * at, PART_COUNT * (at + 1));
    const whole = sum(split);
    // One of less than a cycle in each part is not split.
    const stack = cycles === 0 ? [] : whole ? Array.from(split, (part) => part * cycles / whole) : [cycles];
    const copy = node.slice();
    copy[N.stack] = stack;
    copy[N.columns] = [];
    return copy;
  });
}

// Where the range has changed, the flame graph follows.
function followRange() {
  if (range.followed === chosen.range) return;
  range.followed = chosen.range;
  if (!chosen.range) range.of = range.sums = null;
  flame.trees = {};
  opened.clear();
}

// Beside each section's heading what of the time it shows, while a range is chosen.
// `drawn`: the sections that follow by now; without it all.
/** @param {string[] | null} [drawn] */
function scopes(drawn = null) {
  const [kept, told] = [rangeSums() !== null, windows().length > 0];
  const follow = {
    flame: flameFollows(), functions: kept, code: kept, instructions: kept, threads: kept && callers(), stacks: told, "top-down": told,
  };
  for (const section of document.querySelectorAll("main > section")) {
    const heading = section.querySelector("h2");
    if (!heading || section.id === "timeline" || (drawn && !drawn.includes(section.id))) continue;
    heading.querySelector(".scope")?.remove();
    if (!chosen.range) continue;
    const follows = follow[section.id] ?? false;
    heading.append(make("span", { class: follows ? "scope follows" : "scope" }, follows ? "of the chosen range" : "whole run"));
  }
}

function rangeNotes() {
  if (!chosen.range) return [];
  return rangeSums()
    ? ["Of this range of time: what says so. Of the whole run: everything else, and how a function, line or instruction splits its time."]
    : ["Of this range of time: processes, cycle stacks, top-down. Of the whole run: everything else."];
}

// Below the timeline, what a range leaves out.
// Least share of the time of a range that is not kept apart to be noted.
const NOTED_SHARE = 0.0005;
function rangeLimits() {
  const sums = rangeSums();
  const whole = sums?.processes[chosen.process];
  if (!whole) return [];
  const share = (cycles) => Math.max(0, cycles) / whole;
  const listed = chosen.process
    ? sum(data.functions.map((row, at) => (row[F.process] === chosen.process ? sums.functions[at] : 0))) : sum(sums.functions);
  const rest = 1 - share(listed);
  const limits = [];
  if (rest >= NOTED_SHARE) limits.push(`${percent(rest)} % of the range's time is of instructions with too little of it to be kept apart.`);
  const others = share(chosen.process ? sums.otherCallers[chosen.process] : sum(sums.otherCallers));
  if (others >= NOTED_SHARE) limits.push(`By callers ${percent(others)} % of it is of calls with too little to be kept apart: the flame graph has it at the process, the threads nowhere.`);
  if (callers()) limits.push("Calls with less than 1/4,000 of a stretch of time may count as their callers.");
  if (harts.count > 1 && harts.own === "all") limits.push("Harts begin their stretches of time at different cycles: a range of all is right to within one. Each hart's page is exact.");
  return limits;
}
