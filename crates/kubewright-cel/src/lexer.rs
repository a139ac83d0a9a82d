//! Lexer, and formatting of errors with their position.

/// Error at a position (in characters).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Issue {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Issue {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// Formats all errors like cel-go.
pub(super) fn format_issues(text: &str, issues: &[Issue]) -> String {
    let mut out = Vec::new();
    for issue in issues {
        let before: String = text.chars().take(issue.at).collect();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let source = text.split('\n').nth(line).unwrap_or_default();
        out.push(format!(
            "ERROR: <input>:{}:{}: {}\n | {source}\n | {}^",
            line + 1,
            column + 1,
            issue.message,
            ".".repeat(column)
        ));
    }
    out.join("\n")
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Int(String),
    Uint(String),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    Ident(String),
    /// A field name in backticks.
    Quoted(String),
    Symbol(&'static str),
    End,
}

#[derive(Debug, Clone)]
pub(super) struct PositionedToken {
    pub(super) token: Token,
    pub(super) at: usize,
    pub(super) text: String,
}

const SYMBOLS: [&str; 27] = [
    "&&", "||", "==", "!=", "<=", ">=", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%", "<", ">", "=", "&", "|",
];

pub(super) fn tokens(text: &str) -> Result<Vec<PositionedToken>, Issue> {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let c = chars[at];
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        if c == '/' && chars.get(at + 1) == Some(&'/') {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
            continue;
        }
        let (token, end) = next(&chars, at)?;
        out.push(PositionedToken { token, at, text: chars[at..end].iter().collect() });
        at = end;
    }
    out.push(PositionedToken { token: Token::End, at: chars.len(), text: "<EOF>".to_owned() });
    Ok(out)
}

fn next(chars: &[char], at: usize) -> Result<(Token, usize), Issue> {
    let c = chars[at];
    if c.is_ascii_digit() || (c == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit)) {
        return number(chars, at);
    }
    if let Some((raw, bytes, start)) = string_start(chars, at) {
        return string(chars, at, start, raw, bytes);
    }
    if c.is_ascii_alphabetic() || c == '_' {
        let mut end = at;
        while end < chars.len() && (chars[end].is_ascii_alphanumeric() || chars[end] == '_') {
            end += 1;
        }
        return Ok((Token::Ident(chars[at..end].iter().collect()), end));
    }
    if c == '`' {
        let end = chars[at + 1..].iter().position(|c| *c == '`').map(|length| at + 1 + length);
        let end = end.ok_or_else(|| unknown(chars, at))?;
        return Ok((Token::Quoted(chars[at + 1..end].iter().collect()), end + 1));
    }
    for symbol in SYMBOLS {
        if symbol.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c)) {
            if matches!(symbol, "=" | "&" | "|") {
                return Err(unknown(chars, at));
            }
            return Ok((Token::Symbol(symbol), at + symbol.len()));
        }
    }
    Err(unknown(chars, at))
}

fn unknown(chars: &[char], at: usize) -> Issue {
    let shown: String = chars[at..].iter().take(2).collect();
    Issue::new(at, format!("Syntax error: token recognition error at: '{shown}'"))
}

fn number(chars: &[char], at: usize) -> Result<(Token, usize), Issue> {
    let digits = |mut end: usize, hex: bool| {
        while chars.get(end).is_some_and(|c| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() }) {
            end += 1;
        }
        end
    };
    let hex = chars[at] == '0' && matches!(chars.get(at + 1), Some('x' | 'X'));
    let mut end = if hex { digits(at + 2, true) } else { digits(at, false) };
    let mut is_double = false;
    if !hex {
        if chars.get(end) == Some(&'.') && chars.get(end + 1).is_some_and(char::is_ascii_digit) {
            is_double = true;
            end = digits(end + 1, false);
        }
        if matches!(chars.get(end), Some('e' | 'E')) {
            let sign = usize::from(matches!(chars.get(end + 1), Some('+' | '-')));
            if chars.get(end + 1 + sign).is_some_and(char::is_ascii_digit) {
                is_double = true;
                end = digits(end + 1 + sign, false);
            }
        }
    }
    let text: String = chars[at..end].iter().collect();
    if is_double {
        let value = text.parse().map_err(|_| Issue::new(at, "invalid double literal"))?;
        return Ok((Token::Double(value), end));
    }
    if matches!(chars.get(end), Some('u' | 'U')) {
        return Ok((Token::Uint(text), end + 1));
    }
    Ok((Token::Int(text), end))
}

/// Returns whether a string literal starts here: raw, bytes, and the position of its quotes.
fn string_start(chars: &[char], at: usize) -> Option<(bool, bool, usize)> {
    let (mut raw, mut bytes, mut start) = (false, false, at);
    loop {
        match chars.get(start)? {
            '"' | '\'' => return Some((raw, bytes, start)),
            'r' | 'R' if !raw => raw = true,
            'b' | 'B' if !bytes => bytes = true,
            _ => return None,
        }
        start += 1;
    }
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn string(chars: &[char], at: usize, start: usize, raw: bool, bytes: bool) -> Result<(Token, usize), Issue> {
    let quote = chars[start];
    let triple = chars.get(start + 1) == Some(&quote) && chars.get(start + 2) == Some(&quote);
    let width = if triple { 3 } else { 1 };
    let mut out: Vec<u8> = Vec::new();
    let mut i = start + width;
    loop {
        let Some(&c) = chars.get(i) else { return Err(unknown(chars, at)) };
        if (0..width).all(|k| chars.get(i + k) == Some(&quote)) {
            i += width;
            break;
        }
        if c == '\n' && !triple {
            return Err(unknown(chars, at));
        }
        if c != '\\' || raw {
            push(&mut out, c);
            i += 1;
            continue;
        }
        let bad = || Issue::new(at, "Syntax error: invalid escape sequence");
        let escape = *chars.get(i + 1).ok_or_else(bad)?;
        i += 2;
        let length = match escape {
            'x' | 'X' => 2,
            'u' => 4,
            'U' => 8,
            '0'..='3' => 3,
            simple => {
                let plain = match simple {
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    '\\' | '\'' | '"' | '`' | '?' => simple,
                    _ => return Err(bad()),
                };
                push(&mut out, plain);
                continue;
            }
        };
        let (from, radix) = if length == 3 { (i - 1, 8) } else { (i, 16) };
        let digits: String = chars.get(from..from + length).ok_or_else(bad)?.iter().collect();
        let code = u32::from_str_radix(&digits, radix).map_err(|_| bad())?;
        i = from + length;
        if bytes && length <= 3 {
            out.push(u8::try_from(code).map_err(|_| bad())?);
        } else {
            push(&mut out, char::from_u32(code).ok_or_else(bad)?);
        }
    }
    if bytes {
        return Ok((Token::Bytes(out), i));
    }
    let text = String::from_utf8(out).map_err(|_| Issue::new(at, "Syntax error: invalid string"))?;
    Ok((Token::String(text), i))
}
