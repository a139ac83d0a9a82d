//! What goes wrong, and how.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::channel::mpsc;
use http_body::Frame;
use serde_json::{Value, json};

use super::FrameResult;

/// One planned failure of one request.
#[derive(Clone, Debug)]
pub enum Misbehaviour {
    /// The next list is refused.
    RefuseList { code: u16, reason: &'static str, retry_after: Option<u32> },
    /// The next watch is refused.
    RefuseWatch { code: u16, reason: &'static str, retry_after: Option<u32> },
    /// The next stream of the present state, and only that, is refused.
    RefuseStream { code: u16, reason: &'static str },
    /// Nobody listens when the next list is sent.
    NobodyListensForList,
    /// Nobody listens when the next watch is sent.
    NobodyListensForWatch,
    /// The body of the next list breaks off half-way.
    CutList,
    /// The next page of a list (not the first) is refused.
    RefuseNextPage { code: u16, reason: &'static str },
    /// The next write is refused.
    RefuseWrite { code: u16, reason: &'static str },
    /// The next watch is opened and ends at once, like this.
    EndWatch(Ending),
    /// The next watch is opened and nothing is ever sent on it.
    SilentWatch,
}

/// How a watch ends.
#[derive(Clone, Debug)]
pub enum Ending {
    /// As the server does when its time is up.
    Clean,
    /// In the middle of a line.
    MidLine,
    /// The connection is reset.
    Reset,
    /// With an ERROR event.
    Error { code: u16, reason: &'static str, retry_after: Option<u32> },
}

#[derive(Default)]
pub(super) struct Script(VecDeque<Misbehaviour>);

impl Script {
    pub(super) fn plan(&mut self, misbehaviour: Misbehaviour) {
        self.0.push_back(misbehaviour);
    }

    /// Takes the first planned misbehaviour that fits.
    pub(super) fn take(&mut self, fits: impl Fn(&Misbehaviour) -> bool) -> Option<Misbehaviour> {
        let at = self.0.iter().position(fits)?;
        self.0.remove(at)
    }
}

impl Ending {
    pub(super) fn apply(&self, sender: &mpsc::UnboundedSender<FrameResult>) {
        let last = match self {
            Self::Clean => return,
            Self::MidLine => {
                Ok(Frame::data(Bytes::from_static(br#"{"type":"MODIFIED","object":{"kind":"Conf"#)))
            }
            Self::Reset => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
            Self::Error { code, reason, retry_after } => {
                Ok(line(&json!({"type": "ERROR", "object": status(*code, reason, *retry_after)})))
            }
        };
        // A watch that is gone has ended already.
        let _ = sender.unbounded_send(last);
    }
}

pub(super) fn line(value: &Value) -> Frame<Bytes> {
    Frame::data(Bytes::from(format!("{value}\n")))
}

pub(super) fn status(code: u16, reason: &str, retry_after: Option<u32>) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("planned: {reason}"), "reason": reason, "code": code, "details": {},
    });
    if let Some(seconds) = retry_after {
        status["details"]["retryAfterSeconds"] = json!(seconds);
    }
    status
}
