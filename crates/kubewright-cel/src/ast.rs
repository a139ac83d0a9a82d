//! Abstract syntax tree of expressions.

/// Expression node with its position in the text (in characters).
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) id: usize,
    pub(super) at: usize,
    /// Height of the tree below this node.
    pub(super) depth: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Literal(Literal),
    Ident(String),
    /// `operand.field`, `operand.?field` or `has(operand.field)`.
    Select {
        operand: Box<Expr>,
        field: String,
        test: bool,
        optional: bool,
    },
    Call {
        function: String,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    /// List elements; an optional one (`?e`) is omitted if it has no value.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    Comprehension(Box<Comprehension>),
    /// `Type{field: value}`; an optional field (`?f: v`) is omitted if it has no value.
    Message {
        name: String,
        fields: Vec<(String, Expr, bool)>,
    },
    /// `target.optMap(name, body)` and `optFlatMap`.
    OptionalMap {
        target: Box<Expr>,
        name: String,
        body: Box<Expr>,
        flat: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// Macro over a list or a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    TransformMapEntry,
}

#[derive(Debug, Clone)]
pub(super) struct Comprehension {
    pub(super) kind: Macro,
    pub(super) range: Expr,
    pub(super) first: String,
    /// Name of the value if there are two variables.
    pub(super) second: Option<String>,
    /// Filter of the three-argument forms.
    pub(super) filter: Option<Expr>,
    pub(super) body: Expr,
}

impl Kind {
    /// Returns the direct children.
    pub(super) fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Ident(_) => Vec::new(),
            Self::Select { operand, .. } => vec![operand],
            Self::Call { target, args, .. } => target.as_deref().into_iter().chain(args).collect(),
            Self::List(items) => items.iter().map(|(item, _)| item).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Self::Message { fields, .. } => fields.iter().map(|(_, value, _)| value).collect(),
            Self::Comprehension(fold) => [&fold.range, &fold.body].into_iter().chain(&fold.filter).collect(),
            Self::OptionalMap { target, body, .. } => vec![target, body],
        }
    }
}
