//! Label selectors in query parameters: `a=b,c in (d,e),!f,n>3`.

use kubewright_schema::names;

/// Parsed label selector. The empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    key: String,
    op: Op,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Op {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Returns whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns whether labels match; `label` returns the value of a key.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|term| {
            let value = label(&term.key);
            let number = || value.and_then(|v| v.parse::<i64>().ok());
            match &term.op {
                Op::In(set) => value.is_some_and(|v| set.iter().any(|s| s == v)),
                Op::NotIn(set) => value.is_none_or(|v| !set.iter().any(|s| s == v)),
                Op::Exists => value.is_some(),
                Op::Absent => value.is_none(),
                Op::Greater(bound) => number().is_some_and(|n| n > *bound),
                Op::Less(bound) => number().is_some_and(|n| n < *bound),
            }
        })
    }

    /// Converts a `LabelSelector` object (`matchLabels`, `matchExpressions`); `None` if it is malformed.
    pub fn from_object(selector: &serde_json::Value) -> Option<Self> {
        let mut terms = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(|v| v.as_object()) {
            for (key, value) in labels {
                terms.push(Term { key: key.clone(), op: Op::In(vec![value.as_str()?.to_owned()]) });
            }
        }
        if let Some(expressions) = selector.get("matchExpressions").and_then(|v| v.as_array()) {
            for expression in expressions {
                let values = || -> Option<Vec<String>> {
                    expression
                        .get("values")?
                        .as_array()?
                        .iter()
                        .map(|v| v.as_str().map(str::to_owned))
                        .collect()
                };
                let op = match expression.get("operator")?.as_str()? {
                    "In" => Op::In(values()?),
                    "NotIn" => Op::NotIn(values()?),
                    "Exists" => Op::Exists,
                    "DoesNotExist" => Op::Absent,
                    _ => return None,
                };
                terms.push(Term { key: expression.get("key")?.as_str()?.to_owned(), op });
            }
        }
        Some(Self { terms })
    }

    /// Parses a selector; the error is the message of the 400 response.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: lex(text), at: 0 };
        let mut terms = Vec::new();
        if matches!(parser.peek(), Token::End) {
            return Ok(Self::default());
        }
        loop {
            match parser.peek() {
                Token::Word(_) | Token::Not => {
                    terms.push(
                        parser.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?,
                    );
                    match parser.next() {
                        Token::End => break,
                        Token::Comma => match parser.peek() {
                            Token::Word(_) | Token::Not => {}
                            other => {
                                return Err(format!(
                                    "found '{}', expected: identifier after ','",
                                    other.text()
                                ));
                            }
                        },
                        other => {
                            return Err(format!(
                                "found '{}', expected: ',' or 'end of string'",
                                other.text()
                            ));
                        }
                    }
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
        }
        terms.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { terms })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Comma,
    Open,
    Close,
    Equals,
    DoubleEquals,
    NotEquals,
    Not,
    Greater,
    Less,
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Comma => ",",
            Self::Open => "(",
            Self::Close => ")",
            Self::Equals => "=",
            Self::DoubleEquals => "==",
            Self::NotEquals => "!=",
            Self::Not => "!",
            Self::Greater => ">",
            Self::Less => "<",
            Self::End => "",
        }
    }
}

fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        let simple = match c {
            ' ' | '\t' | '\r' | '\n' => {
                chars.next();
                continue;
            }
            ',' => Token::Comma,
            '(' => Token::Open,
            ')' => Token::Close,
            '>' => Token::Greater,
            '<' => Token::Less,
            '=' | '!' => {
                chars.next();
                let doubled = chars.next_if_eq(&'=').is_some();
                tokens.push(match (c, doubled) {
                    ('=', false) => Token::Equals,
                    ('=', true) => Token::DoubleEquals,
                    (_, false) => Token::Not,
                    (_, true) => Token::NotEquals,
                });
                continue;
            }
            _ => {
                let mut word = String::new();
                while let Some(c) = chars.next_if(|c| {
                    !matches!(c, ' ' | '\t' | '\r' | '\n' | ',' | '(' | ')' | '>' | '<' | '=' | '!')
                }) {
                    word.push(c);
                }
                tokens.push(Token::Word(word));
                continue;
            }
        };
        chars.next();
        tokens.push(simple);
    }
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Term, String> {
        let negated = matches!(self.peek(), Token::Not);
        if negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(word) => word,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        if let Some(why) = names::qualified(&key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
        }
        if negated {
            return Ok(Term { key, op: Op::Absent });
        }
        let op = match self.peek() {
            Token::End | Token::Comma => return Ok(Term { key, op: Op::Exists }),
            Token::Word(word) if word == "in" || word == "notin" => {
                self.next();
                let values = self.set()?;
                if word == "in" { Op::In(values) } else { Op::NotIn(values) }
            }
            Token::Equals | Token::DoubleEquals => {
                self.next();
                Op::In(vec![self.value()])
            }
            Token::NotEquals => {
                self.next();
                Op::NotIn(vec![self.value()])
            }
            bound @ (Token::Greater | Token::Less) => {
                self.next();
                let value = self.value();
                let Ok(number) = value.parse::<i64>() else {
                    return Err(format!(
                        "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                    ));
                };
                if bound == Token::Greater { Op::Greater(number) } else { Op::Less(number) }
            }
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
            }
        };
        if let Op::In(values) | Op::NotIn(values) = &op {
            for (n, value) in values.iter().enumerate() {
                if let Some(why) = names::label_value(value).first() {
                    return Err(format!("values[{n}][{key}]: Invalid value: {value:?}: {why}"));
                }
            }
        }
        Ok(Term { key, op })
    }

    /// Parses one value; nothing before a comma or the end is the empty value.
    fn value(&mut self) -> String {
        match self.peek() {
            Token::Word(word) => {
                self.next();
                word
            }
            _ => String::new(),
        }
    }

    fn set(&mut self) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Open => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.push(word);
                    match self.next() {
                        Token::Comma => {
                            // `(a,)` includes the empty value.
                            if matches!(self.peek(), Token::Close) {
                                values.push(String::new());
                            }
                        }
                        Token::Close => return Ok(values),
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Comma => values.push(String::new()),
                Token::Close => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let find = |key: &str| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        LabelSelector::parse(selector).unwrap().matches(find)
    }

    #[test]
    fn every_operator_matches() {
        let labels = [("app", "x"), ("n", "5")];
        for yes in
            ["", "app=x", "app==x,n", "app!=y", "app in (x, z)", "app notin (y)", "!tier", "n>4", "n<6"]
        {
            assert!(matches(yes, &labels), "{yes}");
        }
        for no in ["app=", "app!=x", "app in (y)", "app notin (x)", "tier", "!app", "n>5", "app<3"] {
            assert!(!matches(no, &labels), "{no}");
        }
    }

    #[test]
    fn malformed_selectors_are_rejected_with_upstreams_messages() {
        for (selector, message) in [
            ("app in", "unable to parse requirement: found '' expected: '('"),
            ("app in x", "unable to parse requirement: found 'x' expected: '('"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a=b!c", "found '!', expected: ',' or 'end of string'"),
            ("a,,b", "found ',', expected: identifier after ','"),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap_err(), message);
        }
    }
}
