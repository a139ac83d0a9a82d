//! `DeltaFifo` alone, without a server: prints the queued objects, and then the deltas of each in order.

use std::fmt;

use kubewright::{
    ObjectKey,
    cache::{Delta, DeltaFifo},
};

#[derive(Clone)]
struct MyPod {
    name: &'static str,
    value: i32,
}

impl fmt::Display for MyPod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{} {}}}", self.name, self.value)
    }
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "printing is what this program does")]
async fn main() -> kubewright::Result<()> {
    run(|line| println!("{line}")).await?;
    Ok(())
}

/// Queues objects, closes the queue, and pops the rest.
pub async fn run(print: impl Fn(String)) -> kubewright::Result<()> {
    let fifo = DeltaFifo::new(|pod: &MyPod| Ok(ObjectKey::cluster(pod.name)));
    fifo.add(MyPod { name: "pod1", value: 1 })?;
    fifo.add(MyPod { name: "pod2", value: 2 })?;
    fifo.add(MyPod { name: "pod3", value: 3 })?;
    print(format!("[{}]", fifo.list().iter().map(MyPod::to_string).collect::<Vec<_>>().join(" ")));

    let renamed = MyPod { name: "pod1-update", value: 1 };
    fifo.update(renamed.clone())?;
    fifo.delete(renamed)?;
    fifo.close();
    while let Some(popped) = fifo.pop(|popped| popped).await {
        for delta in popped.deltas {
            match delta {
                Delta::Added(pod) => print(format!("Add Event: {pod}")),
                Delta::Updated(pod) => print(format!("Update Event: {pod}")),
                Delta::Deleted { object, .. } => print(format!("Delete Event: {object}")),
                Delta::Sync(pod) => print(format!("Sync Event: {pod}")),
                Delta::Replaced(pod) => print(format!("Replaced Event: {pod}")),
            }
        }
    }
    Ok(())
}
