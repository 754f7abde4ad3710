//! The tables of a thread: strings, functions, frames, stacks, each a struct of columns.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use symbols::ModuleId;

use crate::Export;
use crate::model::Frame;

/// Names and colours of the categories, by number.
pub(super) const CATEGORIES: [(&str, &str); 3] =
    [("Other", "grey"), ("User", "yellow"), ("Kernel", "orange")];

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tables {
    string_array: Vec<String>,
    func_table: FuncTable,
    frame_table: FrameTable,
    stack_table: StackTable,
    resource_table: ResourceTable,
    native_symbols: NativeSymbols,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FuncTable {
    length: usize,
    name: Vec<usize>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    resource: Vec<usize>,
    file_name: Vec<Option<usize>>,
    line_number: Vec<Option<u32>>,
    column_number: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct FrameTable {
    length: usize,
    address: Vec<i64>,
    inline_depth: Vec<u32>,
    category: Vec<usize>,
    subcategory: Vec<usize>,
    func: Vec<usize>,
    native_symbol: Vec<Option<usize>>,
    #[serde(rename = "innerWindowID")]
    inner_window_id: Vec<u32>,
    line: Vec<Option<u32>>,
    column: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
struct StackTable {
    length: usize,
    prefix: Vec<Option<usize>>,
    frame: Vec<usize>,
}

#[derive(Default, Serialize)]
struct ResourceTable {
    length: usize,
    lib: Vec<usize>,
    name: Vec<usize>,
    host: Vec<Option<usize>>,
    r#type: Vec<u32>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct NativeSymbols {
    length: usize,
    lib_index: Vec<usize>,
    address: Vec<u64>,
    name: Vec<usize>,
    function_size: Vec<Value>,
}

/// `resourceTypes.library`.
const LIBRARY: u32 = 1;

/// A frame as the key of its interned number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey {
    func: usize,
    address: i64,
    depth: u32,
    category: usize,
    symbol: Option<usize>,
    line: Option<u32>,
}

pub(super) struct Builder<'a> {
    export: &'a Export<'a>,
    tables: Tables,
    strings: HashMap<String, usize>,
    resources: HashMap<ModuleId, usize>,
    funcs: HashMap<(usize, usize, Option<usize>), usize>,
    symbols: HashMap<(ModuleId, u64), usize>,
    frames: HashMap<FrameKey, usize>,
    stacks: HashMap<(Option<usize>, usize), usize>,
    rows: HashMap<usize, usize>,
    /// For each row the stack of its functions and its callers', and the number of the row's own functions.
    functions: HashMap<usize, (usize, u32)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(export: &'a Export<'a>) -> Self {
        Self {
            export,
            tables: Tables::default(),
            strings: HashMap::new(),
            resources: HashMap::new(),
            funcs: HashMap::new(),
            symbols: HashMap::new(),
            frames: HashMap::new(),
            stacks: HashMap::new(),
            rows: HashMap::new(),
            functions: HashMap::new(),
        }
    }

    pub(super) fn finish(self) -> Tables {
        self.tables
    }

    /// The stack of a row, outermost first: callers, its function, inlined functions, instruction.
    pub(super) fn stack(&mut self, row: usize) -> usize {
        if let Some(&known) = self.rows.get(&row) {
            return known;
        }
        let mut rows: Vec<usize> = self.export.stack(row).collect();
        rows.reverse();
        let (mut stack, mut depth) = (None, 0);
        for row in rows {
            let (functions, own) = self.functions(stack, row);
            (stack, depth) = (Some(functions), own);
        }
        if let Some(text) = self.export.instruction(row) {
            let frames = self.export.frames(row);
            let innermost = frames.first().and_then(|frame| frame.source);
            let leaf = Frame { name: &text, source: innermost, inlined: true };
            let key = self.key(row, &leaf, depth);
            stack = Some(self.push(stack, key));
        }
        // The stack is never empty: a row has one function at least.
        let stack = stack.unwrap_or_default();
        self.rows.insert(row, stack);
        stack
    }

    /// Puts a row's functions on `stack`. Returns that stack, and the number of these functions.
    fn functions(&mut self, mut stack: Option<usize>, row: usize) -> (usize, u32) {
        if let Some(&known) = self.functions.get(&row) {
            return known;
        }
        let frames = self.export.frames(row);
        let own = frames.len() as u32;
        for (depth, frame) in (0..).zip(frames.iter().rev()) {
            let key = self.key(row, frame, depth);
            stack = Some(self.push(stack, key));
        }
        let known = (stack.unwrap_or_default(), own);
        self.functions.insert(row, known);
        known
    }

    fn key(&mut self, row: usize, frame: &Frame<'_>, depth: u32) -> FrameKey {
        let at = self.export.location(row);
        let (file, line) = frame.source.unzip();
        let address = u32::try_from(at.offset).map_or(-1, i64::from);
        FrameKey {
            func: self.func(at.module, frame.name, file),
            address,
            depth,
            category: if self.export.is_kernel(row) { 2 } else { 1 },
            symbol: (address >= 0).then(|| self.symbol(row)),
            line: line.filter(|line| *line > 0),
        }
    }

    fn push(&mut self, prefix: Option<usize>, key: FrameKey) -> usize {
        let frame = *self.frames.entry(key).or_insert_with(|| {
            let table = &mut self.tables.frame_table;
            table.address.push(key.address);
            table.inline_depth.push(key.depth);
            table.category.push(key.category);
            table.subcategory.push(0);
            table.func.push(key.func);
            table.native_symbol.push(key.symbol);
            table.inner_window_id.push(0);
            table.line.push(key.line);
            table.column.push(None);
            table.length += 1;
            table.length - 1
        });
        *self.stacks.entry((prefix, frame)).or_insert_with(|| {
            let table = &mut self.tables.stack_table;
            table.prefix.push(prefix);
            table.frame.push(frame);
            table.length += 1;
            table.length - 1
        })
    }

    fn func(&mut self, module: ModuleId, name: &str, file: Option<&str>) -> usize {
        let name = self.string(name);
        let file = file.map(|file| self.string(file));
        let resource = self.resource(module);
        *self.funcs.entry((name, resource, file)).or_insert_with(|| {
            let table = &mut self.tables.func_table;
            table.name.push(name);
            table.is_js.push(false);
            table.relevant_for_js.push(false);
            table.resource.push(resource);
            table.file_name.push(file);
            table.line_number.push(None);
            table.column_number.push(None);
            table.length += 1;
            table.length - 1
        })
    }

    fn symbol(&mut self, row: usize) -> usize {
        let export = self.export;
        let function = export.symbols.function(export.location(row).function);
        let key = (function.module, function.start);
        if let Some(&known) = self.symbols.get(&key) {
            return known;
        }
        let name = self.string(&function.name);
        let table = &mut self.tables.native_symbols;
        table.lib_index.push(function.module.0 as usize);
        table.address.push(function.start);
        table.name.push(name);
        table.function_size.push(match function.size {
            0 => Value::Null,
            size => size.into(),
        });
        table.length += 1;
        self.symbols.insert(key, table.length - 1);
        table.length - 1
    }

    fn resource(&mut self, module: ModuleId) -> usize {
        if let Some(&known) = self.resources.get(&module) {
            return known;
        }
        let name = self.string(self.export.symbols.module(module).name());
        let table = &mut self.tables.resource_table;
        table.lib.push(module.0 as usize);
        table.name.push(name);
        table.host.push(None);
        table.r#type.push(LIBRARY);
        table.length += 1;
        self.resources.insert(module, table.length - 1);
        table.length - 1
    }

    fn string(&mut self, text: &str) -> usize {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let index = self.tables.string_array.len();
        self.tables.string_array.push(text.to_owned());
        self.strings.insert(text.to_owned(), index);
        index
    }
}
