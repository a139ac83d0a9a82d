//! Planned faults.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::channel::mpsc;
use http_body::Frame;
use serde_json::{Value, json};

use super::FrameResult;

/// One planned fault of one request.
#[derive(Clone, Debug)]
pub enum PlannedFault {
    /// The next list is rejected.
    RejectList { code: u16, reason: &'static str, retry_after: Option<u32> },
    /// The next watch is rejected.
    RejectWatch { code: u16, reason: &'static str, retry_after: Option<u32> },
    /// The next stream of initial events, and only that, is rejected.
    RejectStream { code: u16, reason: &'static str },
    /// The connection for the next list is refused.
    RefuseListConnection,
    /// The connection for the next watch is refused.
    RefuseWatchConnection,
    /// The body of the next list is interrupted half-way.
    CutList,
    /// The next page of a list (not the first) is rejected.
    RejectNextPage { code: u16, reason: &'static str },
    /// The next write is rejected.
    RejectWrite { code: u16, reason: &'static str },
    /// The next watch is opened and ends at once.
    EndWatch(Ending),
    /// The next watch is opened and never sends anything.
    SilentWatch,
}

/// How a watch ends.
#[derive(Clone, Debug)]
pub enum Ending {
    /// The server closes it after its timeout.
    Clean,
    /// In the middle of a line.
    MidLine,
    /// The connection is reset.
    Reset,
    /// With an ERROR event.
    Error { code: u16, reason: &'static str, retry_after: Option<u32> },
}

#[derive(Default)]
pub(super) struct Script(VecDeque<PlannedFault>);

impl Script {
    pub(super) fn plan(&mut self, planned_fault: PlannedFault) {
        self.0.push_back(planned_fault);
    }

    /// Takes the first planned fault that matches.
    pub(super) fn take(&mut self, fits: impl Fn(&PlannedFault) -> bool) -> Option<PlannedFault> {
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
        // The watch may be closed.
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
