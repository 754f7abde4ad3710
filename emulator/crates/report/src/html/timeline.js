/* Over time: the cycle stack, and a range of time that others follow */

const CATEGORIES = data.categories?.map((name, index) => ({ name, index, color: `var(--c${index})` })) ?? [];
const windows = () => data.top_down?.windows ?? [];
// Windows of several harts may lie across the ends.
const inRange = ({ start, end }) => !chosen.range || ((start + end) / 2 >= chosen.range[0] && (start + end) / 2 <= chosen.range[1]);

// Cycles by published category of a process in the chosen range; null without one.
function rangeStack(process) {
  if (!chosen.range) return null;
  const stack = new Array(data.categories.length).fill(0);
  for (const window of windows().filter(inRange)) {
    window.stacks[process]?.forEach((share, at) => { stack[at] += share * window.cycles; });
  }
  return stack;
}

// Shares of `parts` ({ name, color, index }) in each window from the process's first to its last, one on the other; what
// it did not use of a window is left empty. `of` gives a window's shares by process.
function overTime(name, parts, of) {
  const shown = windows().filter((window) => window.cycles > 0 && of(window)[chosen.process]);
  if (!shown.length) return null;
  const [from, to] = [shown[0].start, shown.at(-1).end];
  const svg = make("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img",
    "aria-label": `${name} over time, cycle ${number(from)} to ${number(to)}` });
  // A path for each part.
  for (const part of parts) {
    let path = "";
    for (const window of shown) {
      const shares = of(window)[chosen.process];
      const x = (1000 * (window.start - from) / (to - from)).toFixed(2);
      const width = (1000 * (window.end - window.start) / (to - from) + 0.2).toFixed(2);
      const below = sum(parts.slice(0, parts.indexOf(part)).map((other) => shares[other.index]));
      const height = 100 * shares[part.index];
      if (height > 0.05) path += `M${x} ${(100 - 100 * below).toFixed(2)}h${width}v${(-height).toFixed(2)}h-${width}z`;
    }
    svg.append(make("path", { d: path, style: `fill:${part.color}` }));
  }
  return { svg, from, to, shown };
}

function timeline() {
  const host = byId("timeline-chart");
  const chart = overTime("Cycle stack", CATEGORIES, (window) => window.stacks);
  byId("timeline").hidden = !chart;
  if (!chart) return;
  const { svg, from, to, shown } = chart;
  svg.setAttribute("class", "brushed");
  const brush = make("div", { class: "brush", tabindex: 0, role: "slider", "aria-label": "Range of time",
    "aria-valuemin": from, "aria-valuemax": to, title: "Drag to choose a range of time; Escape clears it" });
  const box = make("i");
  brush.append(svg, box);
  const place = () => {
    const range = chosen.range;
    box.hidden = !range;
    brush.setAttribute("aria-valuenow", range ? range[0] : from);
    brush.setAttribute("aria-valuetext", range ? `cycle ${number(range[0])} to ${number(range[1])}` : "all of it");
    if (!range) return;
    const at = (cycle) => 100 * Math.max(0, Math.min(1, (cycle - from) / (to - from)));
    box.style.left = at(range[0]) + "%";
    box.style.width = at(range[1]) - at(range[0]) + "%";
  };
  // A range is of whole stretches of time: those in which instructions are told apart, else windows.
  const kept = bins.map(([start, end]) => ({ start, end })).filter(({ start, end }) => end > from && start < to);
  const stretches = kept.length ? kept : shown;
  const choose = (first, last) => {
    const starts = stretches.findLast((stretch) => stretch.start <= first) ?? stretches[0];
    const ends = stretches.find((stretch) => stretch.end >= last) ?? stretches.at(-1);
    const [start, end] = [starts.start, Math.max(ends.end, starts.end)];
    if (chosen.range?.[0] === start && chosen.range?.[1] === end) return;
    chosen.range = [start, end];
    place();
    followSoon();
  };
  const cycleAt = (event) => {
    const edges = brush.getBoundingClientRect();
    return from + (to - from) * Math.max(0, Math.min(1, (event.clientX - edges.left) / edges.width));
  };
  brush.addEventListener("pointerdown", (event) => {
    const begun = cycleAt(event);
    const before = event.clientX;
    const drag = new AbortController();
    const { signal } = drag;
    brush.setPointerCapture(event.pointerId);
    following.milliseconds = 0;
    const end = (now) => {
      drag.abort();
      if (Math.abs(now.clientX - before) < 3) chosen.range = null;
      place();
      refreshRange();
    };
    brush.addEventListener("pointermove", (now) => choose(Math.min(begun, cycleAt(now)), Math.max(begun, cycleAt(now))), { signal });
    for (const name of ["pointerup", "pointercancel"]) brush.addEventListener(name, end, { signal });
  });
  brush.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape" && chosen.range) chosen.range = null;
    else if (step && !chosen.range) chosen.range = [stretches[0].start, stretches[Math.ceil(stretches.length / 10) - 1].end];
    else if (step && chosen.range) {
      const [begin, end] = chosen.range;
      const first = stretches.findIndex((stretch) => stretch.end > begin);
      const last = stretches.findLastIndex((stretch) => stretch.start < end);
      const to = stretches[Math.max(first + (event.shiftKey ? 0 : step), Math.min(stretches.length - 1, last + step))];
      const since = event.shiftKey ? first : Math.max(0, Math.min(stretches.length - 1 - (last - first), first + step));
      chosen.range = [stretches[Math.max(0, since)].start, Math.max(to.end, stretches[Math.max(0, since)].end)];
    } else return;
    event.preventDefault();
    place();
    refreshRange();
  });
  place();
  host.replaceChildren(legend(CATEGORIES), brush, make("p", { class: "muted" },
    `${data.processes[chosen.process].name}, cycle ${number(from)} to ${number(to)}; ` +
    (chosen.process ? "empty: another process ran, or the hart slept. " : "idle time within a window is left out. ") +
    "As published, a full store queue counts as Front-end. Drag, or arrow keys (with Shift: its end), to choose a range."));
}
