/* What the page's scripts read, for the check of their types (scripts/lib/lint.sh). html/data.rs and html/compared.rs write it. */

/** The first cycle, and the first one after it. */
type CycleRange = [number, number];

/** An array that stands for a row: `F`, `I` and `N` have the indices of its fields. */
type RowArray = any[];

/** An element of the page, of whichever kind: its scripts know by its id. */
type PageElement = HTMLElement & {
  value: any; checked: boolean; open: boolean; close(): void; showModal(): void; content: DocumentFragment; parentElement: HTMLElement;
};

/** All elements of the page are of HTML or SVG, which have these. */
interface Element {
  readonly dataset: DOMStringMap; readonly offsetHeight: number; focus(options?: FocusOptions): void;
  /** The node of a flame graph that a frame shows. */
  node?: TreeNode;
}

/** A column of a table; one with a key sorts it. */
interface TableColumn {
  name: string; key?: ((row: any) => any) | null; number?: boolean; width?: string; title?: string; sorted?: boolean;
}

/** What hears keys of a table, and its label for readers of the screen. */
interface TableOptions { keydown?: ((event: KeyboardEvent, row: any, at: number) => void) | null; label?: string | null }

/** A table of any length. */
interface ShownTable {
  show(list: any[]): void; replace(list: any[], at: number): void; redraw(): void; reveal(at: number, focus: boolean): void; rows(): any[];
}

/** A flame graph in its element. */
interface FlameView { draw(): void; zoom(node: TreeNode): void; top(): void }

/** What a flame graph shows: the tree, each node's width, background at so many pixels, title; and what is done with a node. */
interface FlameSource {
  root(): TreeNode; value(node: TreeNode): number; paint(node: TreeNode, size: number): string; matches(node: TreeNode): boolean;
  title(node: TreeNode): string; chosen(node: TreeNode): void; open(node: TreeNode): void;
}

/** Cycles in the chosen range, by index into what is counted. */
interface RangeSums {
  items: Float64Array; processes: Float64Array; functions: Float64Array; lines: Float64Array; callers: Float64Array;
  otherCallers: Float64Array;
}

/** A node of the flame graph with what is below it. */
interface TreeNode {
  name: string; kind: number; module: number; above: TreeNode | null; below: TreeNode[];
  stack: ArrayLike<number>; values: ArrayLike<number>; own: number; total: number; ownValues?: number[];
}

interface Names {
  function: ("process" | "name" | "module" | "cycles" | "share" | "stack" | "shares" | "missing" | "total" | "margin"
    | "margin_of_all")[];
  instruction: ("process" | "pc" | "label" | "function" | "inlined" | "source" | "text" | "cycles" | "share" | "stack" | "shares"
    | "item" | "address" | "library" | "margin" | "margin_of_all")[];
  node: ("above" | "kind" | "name" | "module" | "stack" | "columns")[];
  kinds: ("process" | "thread" | "module" | "function" | "inlined" | "line")[];
  parts: string[];
}

interface Flame { names: string[]; columns: number[]; lines: RowArray[]; callers: RowArray[] }

interface Column {
  name: string; label: string; short: string; profiler: string | null; period: number | null; random: boolean; samples: number;
  dropped: number; unmatched: number; primary: boolean; published: ([number, string] | null)[];
}

interface ProcessRow {
  name: string; pid: number | null; cycles: number; share: number; class: string; stack: number[]; samples: number[];
  /** By column and level: measured error, what sampling alone leaves, and the margin of the error if the region was sampled. */
  errors: ([number, number, number | null][] | null)[];
}

interface Command { title: string; members: number[]; cycles: number; share: number; class: string; stack: number[] }

interface Disagreement { process: number; column: number; named: [string, number]; truth: [string, number]; words: number }

interface PageData {
  meta: any; focus: number | null; categories: string[]; names: Names; columns: Column[]; processes: ProcessRow[]; commands: Command[];
  totals: { cycles: number; idle: number; instructions: number; traps: number; ipc: number; elapsed?: { cycles: number; ms: number | null } };
  top_down: any; tea: any; disagreements: Disagreement[]; warnings: string[]; functions: RowArray[]; listed: number[]; flame: Flame;
  modules: { path: string; file: string | null; build_id: string | null; share: number; missing?: string[] }[];
  over_time: CycleRange[]; strings: string[];
  /** Of the page of two runs. */
  comparison: any;
}

/** What a reader has chosen for all views. */
interface Chosen {
  /** Index of a process; 0: all. */
  process: number;
  /** Name of a thread; empty: all. */
  thread: string;
  /** Index of a module; -1: all. */
  module: number;
  /** Words that names must have. */
  words: string;
  /** Cycles; null: the whole run. */
  range: CycleRange | null;
  /** True if profilers are shown beside the Oracle. */
  profilers: boolean;
}

/** The function whose code is shown, the tables that show it, and the instruction and source line that are chosen in it. */
interface CodeView {
  function: number; lines: ShownTable | null; source: ShownTable | null; items: any[]; sourceRows: any[]; pc: string | null;
  at: string | null;
}

/** The range that `sums` are of, and the one that the flame graph follows. */
interface RangeState { of: CycleRange | null; sums: RangeSums | null; followed: CycleRange | null }

/** A row of the call tree. */
interface CallRow { node: TreeNode; depth: number }
