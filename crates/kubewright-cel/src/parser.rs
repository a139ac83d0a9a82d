//! Parser, which also expands macros.

use super::{
    ast::{Comprehension, Expr, Kind, Literal, Macro},
    lexer::{Issue, PositionedToken, Token, tokens},
};

const STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                      BYTES, IDENTIFIER}";
/// Maximum depth of expressions: checker and evaluator recurse on the stack of a request.
const MAX_DEPTH: usize = 100;
/// Precedence of `&&`.
const AND: usize = 1;

pub(super) fn parse(text: &str) -> Result<Expr, Issue> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, ids: 0, depth: 0 };
    let expr = parser.expression()?;
    match &parser.peek().token {
        Token::End => Ok(expr),
        _ => Err(parser.unexpected("<EOF>")),
    }
}

struct Parser {
    tokens: Vec<PositionedToken>,
    at: usize,
    ids: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &PositionedToken {
        &self.tokens[self.at]
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(&self.peek().token, Token::Symbol(found) if *found == symbol)
    }

    fn eat(&mut self, symbol: &str) -> Option<usize> {
        let at = self.peek().at;
        self.is(symbol).then(|| {
            self.at += 1;
            at
        })
    }

    fn expect(&mut self, symbol: &'static str) -> Result<usize, Issue> {
        self.eat(symbol).ok_or_else(|| self.unexpected(&format!("'{symbol}'")))
    }

    fn unexpected(&self, expected: &str) -> Issue {
        let found = self.peek();
        let how = if expected == "<EOF>" { "extraneous" } else { "mismatched" };
        Issue::new(found.at, format!("Syntax error: {how} input '{}' expecting {expected}", found.text))
    }

    fn node(&mut self, at: usize, kind: Kind) -> Expr {
        self.ids += 1;
        let depth = 1 + deepest(&kind);
        Expr { id: self.ids, at, depth, kind }
    }

    fn call(&mut self, at: usize, function: &str, args: Vec<Expr>) -> Expr {
        self.node(at, Kind::Call { function: function.to_owned(), target: None, args })
    }

    fn expression(&mut self) -> Result<Expr, Issue> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Issue::new(
                self.peek().at,
                format!("expression recursion limit exceeded: {MAX_DEPTH}"),
            ));
        }
        let condition = self.binary(0)?;
        let expr = if let Some(at) = self.eat("?") {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.expression()?;
            self.call(at, "_?_:_", vec![condition, yes, no])
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    /// Parses binary operators of at least precedence `level`.
    fn binary(&mut self, level: usize) -> Result<Expr, Issue> {
        let mut left = self.unary()?;
        while let Some((found, name)) = self.operator().filter(|(found, _)| *found >= level) {
            let at = self.peek().at;
            self.at += 1;
            let right = self.binary(found + 1)?;
            left = if found <= AND {
                self.chain(at, name, found, left, right)?
            } else {
                self.checked_call(at, name, vec![left, right])?
            };
        }
        Ok(left)
    }

    /// Returns precedence and function of the next binary operator.
    fn operator(&self) -> Option<(usize, &'static str)> {
        let found = match &self.peek().token {
            Token::Symbol(symbol) => *symbol,
            Token::Ident(word) if word == "in" => "in",
            _ => return None,
        };
        Some(match found {
            "||" => (0, "_||_"),
            "&&" => (AND, "_&&_"),
            "<" => (2, "_<_"),
            "<=" => (2, "_<=_"),
            ">" => (2, "_>_"),
            ">=" => (2, "_>=_"),
            "==" => (2, "_==_"),
            "!=" => (2, "_!=_"),
            "in" => (2, "@in"),
            "+" => (3, "_+_"),
            "-" => (3, "_-_"),
            "*" => (4, "_*_"),
            "/" => (4, "_/_"),
            "%" => (4, "_%_"),
            _ => return None,
        })
    }

    /// Parses `a && b && c …` as a balanced tree, so that long chains stay shallow.
    fn chain(
        &mut self,
        at: usize,
        name: &str,
        level: usize,
        first: Expr,
        second: Expr,
    ) -> Result<Expr, Issue> {
        let (mut terms, mut places) = (vec![first, second], vec![at]);
        while self.operator().is_some_and(|(found, _)| found == level) {
            places.push(self.peek().at);
            self.at += 1;
            terms.push(self.binary(level + 1)?);
        }
        while terms.len() > 1 {
            let (mut next, mut between) = (Vec::new(), Vec::new());
            let mut rest = terms.into_iter();
            let mut ops = places.into_iter();
            while let Some(left) = rest.next() {
                next.push(match (rest.next(), ops.next()) {
                    (Some(right), Some(at)) => self.checked_call(at, name, vec![left, right])?,
                    _ => left,
                });
                between.extend(ops.next());
            }
            (terms, places) = (next, between);
        }
        terms.pop().ok_or_else(|| Issue::new(at, "empty chain"))
    }

    fn checked_call(&mut self, at: usize, name: &str, args: Vec<Expr>) -> Result<Expr, Issue> {
        let call = self.call(at, name, args);
        if call.depth > MAX_DEPTH { Err(too_deep(at)) } else { Ok(call) }
    }

    fn unary(&mut self) -> Result<Expr, Issue> {
        for (symbol, name) in [("!", "!_"), ("-", "-_")] {
            let at = self.peek().at;
            let mut count = 0;
            while self.eat(symbol).is_some() {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            let number = symbol == "-" && count % 2 == 1;
            if let (true, Token::Int(text)) = (number, self.peek().token.clone()) {
                self.at += 1;
                let value = int(&format!("-{text}")).ok_or_else(|| Issue::new(at, "invalid int literal"))?;
                let literal = self.node(at, Kind::Literal(Literal::Int(value)));
                return self.postfix(literal);
            }
            if let (true, Token::Double(value)) = (number, self.peek().token.clone()) {
                self.at += 1;
                let literal = self.node(at, Kind::Literal(Literal::Double(-value)));
                return self.postfix(literal);
            }
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(too_deep(at));
            }
            let operand = self.unary()?;
            self.depth -= 1;
            return Ok(if count % 2 == 1 { self.call(at, name, vec![operand]) } else { operand });
        }
        let primary = self.primary()?;
        self.postfix(primary)
    }

    fn postfix(&mut self, mut expr: Expr) -> Result<Expr, Issue> {
        loop {
            if expr.depth > MAX_DEPTH {
                return Err(too_deep(expr.at));
            }
            if let Some(at) = self.eat(".") {
                let optional = self.eat("?").is_some();
                let name = self.name()?;
                if let Some(open) = self.eat("(").filter(|_| !optional) {
                    let args = self.arguments(")")?;
                    expr = self.member(expr, &name, open, args)?;
                } else {
                    let operand = Box::new(expr);
                    expr = self.node(at, Kind::Select { operand, field: name, test: false, optional });
                }
            } else if let Some(at) = self.eat("[") {
                let optional = self.eat("?").is_some();
                let index = self.expression()?;
                self.expect("]")?;
                expr = self.call(at, if optional { "_[?_]" } else { "_[_]" }, vec![expr, index]);
            } else if let Some(name) = super::check::dotted(&expr).filter(|_| self.eat("{").is_some()) {
                expr = self.message(expr.at, name)?;
            } else {
                return Ok(expr);
            }
        }
    }

    /// Parses the fields of an object construction, after the opening brace.
    fn message(&mut self, at: usize, name: String) -> Result<Expr, Issue> {
        let mut fields = Vec::new();
        while self.eat("}").is_none() {
            let optional = self.eat("?").is_some();
            let field = self.name()?;
            self.expect(":")?;
            fields.push((field, self.expression()?, optional));
            if self.eat(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        Ok(self.node(at, Kind::Message { name, fields }))
    }

    fn name(&mut self) -> Result<String, Issue> {
        match self.peek().token.clone() {
            Token::Ident(name) if !matches!(&*name, "in" | "true" | "false" | "null") => {
                self.at += 1;
                Ok(name)
            }
            Token::Quoted(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("IDENTIFIER")),
        }
    }

    fn arguments(&mut self, close: &'static str) -> Result<Vec<Expr>, Issue> {
        let mut out = Vec::new();
        while self.eat(close).is_none() {
            out.push(self.expression()?);
            if self.eat(",").is_none() {
                self.expect(close)?;
                break;
            }
        }
        Ok(out)
    }

    fn primary(&mut self) -> Result<Expr, Issue> {
        let PositionedToken { token, at, .. } = self.peek().clone();
        let literal = match token {
            Token::Int(text) => {
                Literal::Int(int(&text).ok_or_else(|| Issue::new(at, "invalid int literal"))?)
            }
            Token::Uint(text) => {
                let value =
                    text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
                Literal::Uint(value.map_err(|_| Issue::new(at, "invalid uint literal"))?)
            }
            Token::Double(value) => Literal::Double(value),
            Token::String(text) => Literal::String(text),
            Token::Bytes(bytes) => Literal::Bytes(bytes),
            Token::Ident(word) if word == "true" => Literal::Bool(true),
            Token::Ident(word) if word == "false" => Literal::Bool(false),
            Token::Ident(word) if word == "null" => Literal::Null,
            Token::Ident(word) if word != "in" => return self.identifier(&word, at),
            Token::Symbol("(") => {
                self.at += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Symbol("[") => return self.list(at),
            Token::Symbol("{") => return self.map(at),
            Token::Symbol(".") => {
                self.at += 1;
                let name = self.name()?;
                return self.identifier_from(&name, at);
            }
            _ => return Err(self.unexpected(STARTS)),
        };
        self.at += 1;
        Ok(self.node(at, Kind::Literal(literal)))
    }

    fn identifier(&mut self, word: &str, at: usize) -> Result<Expr, Issue> {
        if super::escape::RESERVED.contains(&word) {
            return Err(Issue::new(at, format!("Syntax error: reserved identifier: {word}")));
        }
        self.at += 1;
        self.identifier_from(word, at)
    }

    fn identifier_from(&mut self, word: &str, at: usize) -> Result<Expr, Issue> {
        let Some(open) = self.eat("(") else { return Ok(self.node(at, Kind::Ident(word.to_owned()))) };
        let mut args = self.arguments(")")?;
        if word == "has" && args.len() == 1 {
            return match args.remove(0) {
                Expr { kind: Kind::Select { operand, field, test: false, .. }, .. } => {
                    Ok(self.node(open, Kind::Select { operand, field, test: true, optional: false }))
                }
                other => Err(Issue::new(other.at, "invalid argument to has() macro")),
            };
        }
        Ok(self.call(open, word, args))
    }

    fn list(&mut self, at: usize) -> Result<Expr, Issue> {
        self.at += 1;
        let mut items = Vec::new();
        while self.eat("]").is_none() {
            let optional = self.eat("?").is_some();
            items.push((self.expression()?, optional));
            if self.eat(",").is_none() {
                self.expect("]")?;
                break;
            }
        }
        Ok(self.node(at, Kind::List(items)))
    }

    fn map(&mut self, at: usize) -> Result<Expr, Issue> {
        self.at += 1;
        let mut entries = Vec::new();
        while self.eat("}").is_none() {
            let optional = self.eat("?").is_some();
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?, optional));
            if self.eat(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        Ok(self.node(at, Kind::Map(entries)))
    }

    /// Creates a member call: a macro or a function.
    fn member(&mut self, target: Expr, name: &str, open: usize, mut args: Vec<Expr>) -> Result<Expr, Issue> {
        let fold = match (name, args.len()) {
            ("all", 2 | 3) => Macro::All,
            ("exists", 2 | 3) => Macro::Exists,
            ("exists_one" | "existsOne", 2 | 3) => Macro::ExistsOne,
            ("map", 2 | 3) => Macro::Map,
            ("filter", 2) => Macro::Filter,
            ("transformList", 3 | 4) => Macro::TransformList,
            ("transformMap", 3 | 4) => Macro::TransformMap,
            ("transformMapEntry", 3 | 4) => Macro::TransformMapEntry,
            ("optMap" | "optFlatMap", 2) => {
                let body = Box::new(args.remove(1));
                let name_of = variable(&args[0])?;
                let flat = name == "optFlatMap";
                return Ok(self
                    .node(open, Kind::OptionalMap { target: Box::new(target), name: name_of, body, flat }));
            }
            _ => {
                let (function, target) = (name.to_owned(), Some(Box::new(target)));
                return Ok(self.node(open, Kind::Call { function, target, args }));
            }
        };
        let first = variable(&args.remove(0))?;
        let two = match fold {
            Macro::Map | Macro::Filter => false,
            Macro::All | Macro::Exists | Macro::ExistsOne => args.len() == 2,
            _ => true,
        };
        let second = if two { Some(variable(&args.remove(0))?) } else { None };
        let body = args.pop().ok_or_else(|| Issue::new(open, "macro lacks an argument"))?;
        let filter = args.pop();
        let fold = Comprehension { kind: fold, range: target, first, second, filter, body };
        Ok(self.node(open, Kind::Comprehension(Box::new(fold))))
    }
}

fn too_deep(at: usize) -> Issue {
    Issue::new(at, format!("expression recursion limit exceeded: {MAX_DEPTH}"))
}

fn deepest(kind: &Kind) -> usize {
    kind.children().into_iter().map(|child| child.depth).max().unwrap_or_default()
}

fn variable(expr: &Expr) -> Result<String, Issue> {
    match &expr.kind {
        Kind::Ident(name) => Ok(name.clone()),
        _ => Err(Issue::new(expr.at, "argument is not an identifier")),
    }
}

fn int(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16).ok(),
        None => text.parse().ok(),
    }
}
