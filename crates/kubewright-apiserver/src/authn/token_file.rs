//! Static tokens: `--token-auth-file`, lines of `token,user,uid,"group1,group2"`.

use std::collections::BTreeMap;

use super::User;

/// A token file cannot be parsed. The tokens themselves are never named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// A line has too few columns.
    #[error("line {line} of the token file has {columns} columns; it needs token, user name and user uid")]
    Columns {
        /// The line, from 1.
        line: usize,
        /// The number of columns.
        columns: usize,
    },
    /// A line has no token.
    #[error("line {line} of the token file has an empty token")]
    Empty {
        /// The line, from 1.
        line: usize,
    },
    /// A quote is not closed.
    #[error("line {line} of the token file has a quote that is not closed")]
    Quote {
        /// The line, from 1.
        line: usize,
    },
}

/// The users of a token file.
#[derive(Clone, Default)]
pub struct TokenFile {
    users: BTreeMap<String, User>,
}

impl std::fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenFile").field("users", &self.users.len()).finish()
    }
}

impl TokenFile {
    /// Parses a token file.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut users = BTreeMap::new();
        for (n, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let columns = columns(line).ok_or(TokenFileError::Quote { line: n + 1 })?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(TokenFileError::Columns { line: n + 1, columns: columns.len() });
            };
            if token.is_empty() {
                return Err(TokenFileError::Empty { line: n + 1 });
            }
            // A fourth column that is there but empty is one group of that name, as upstream reads it.
            let groups = rest.first().map(|g| g.split(',').map(str::to_owned).collect()).unwrap_or_default();
            let user = User { name: name.clone(), uid: uid.clone(), groups, ..User::default() };
            users.insert(token.clone(), user);
        }
        Ok(Self { users })
    }

    /// Adds a user.
    pub fn add(&mut self, token: &str, user: User) {
        self.users.insert(token.to_owned(), user);
    }

    /// Returns the user of a token.
    pub fn user(&self, token: &str) -> Option<User> {
        self.users.get(token).cloned()
    }
}

/// Splits a line of CSV into columns.
fn columns(line: &str) -> Option<Vec<String>> {
    let (mut columns, mut column, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                column.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(std::mem::take(&mut column)),
            c => column.push(c),
        }
    }
    columns.push(column);
    (!quoted).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_groups_and_quotes() {
        let file =
            TokenFile::parse("t1,admin,u1,\"system:masters,dev\"\nt2,bob,u2,\"\"\nt3,eve,u3\n").unwrap();
        assert_eq!(file.user("t1").unwrap().groups, ["system:masters", "dev"]);
        assert_eq!(file.user("t2").unwrap().groups, [""]);
        assert!(file.user("t3").unwrap().groups.is_empty());
        assert!(file.user("nope").is_none());
    }

    #[test]
    fn bad_lines_are_named_without_their_tokens() {
        for (text, error) in [
            ("secret,admin", TokenFileError::Columns { line: 1, columns: 2 }),
            ("\n,admin,u", TokenFileError::Empty { line: 2 }),
            ("secret,admin,u,\"x", TokenFileError::Quote { line: 1 }),
        ] {
            let found = TokenFile::parse(text).unwrap_err();
            assert_eq!(found, error);
            assert!(!found.to_string().contains("secret"));
        }
    }
}
