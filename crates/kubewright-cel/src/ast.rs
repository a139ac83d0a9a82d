//! Expressions.

/// A node with its place in the text (in characters).
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) id: usize,
    pub(super) at: usize,
    /// How many nodes lie below each other here.
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
    /// Elements; an optional one (`?e`) is left out when it has no value.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    Loop(Box<Loop>),
    /// `Type{field: value}`; an optional field (`?f: v`) is left out when it has no value.
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

/// What a macro over a list or a map does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
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
pub(super) struct Loop {
    pub(super) fold: Fold,
    pub(super) range: Expr,
    pub(super) first: String,
    /// The value's name when there are two variables.
    pub(super) second: Option<String>,
    /// Which elements take part, for the three-argument forms.
    pub(super) filter: Option<Expr>,
    pub(super) body: Expr,
}

impl Kind {
    /// The nodes right below.
    pub(super) fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Ident(_) => Vec::new(),
            Self::Select { operand, .. } => vec![operand],
            Self::Call { target, args, .. } => target.as_deref().into_iter().chain(args).collect(),
            Self::List(items) => items.iter().map(|(item, _)| item).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Self::Message { fields, .. } => fields.iter().map(|(_, value, _)| value).collect(),
            Self::Loop(fold) => [&fold.range, &fold.body].into_iter().chain(&fold.filter).collect(),
            Self::OptionalMap { target, body, .. } => vec![target, body],
        }
    }
}
