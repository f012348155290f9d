//! The life of a pod on this node: its volumes, its containers, its end.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Pod, PodSpec, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep},
};

use super::{
    changes::{Changes, changed, deletion},
    member::{Member, PodAction},
    mounted::Mounted,
    status::{self, View},
};
use crate::{
    address::AddressClaim,
    container::{ContainerReport, Handle, Task},
    context::NodeContext,
    volume::Volumes,
};

/// The wait before what failed on this machine is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A pod that runs on this node.
pub(super) struct Life {
    context: Arc<NodeContext>,
    /// As it was seen last: when it is gone, this is what it was.
    pod: Arc<Pod>,
    changes: Changes,
    /// In the order in which they start.
    members: Vec<Member>,
    address: Option<Ipv4Addr>,
    /// Why no container starts yet.
    message: String,
    /// The end of its grace period, from the moment that it is to end.
    deadline: Option<Instant>,
    status: PodStatus,
    statuses: watch::Sender<Option<PodStatus>>,
}

impl Life {
    /// The life of a pod that is bound to this node; its statuses go to `statuses`. `None` for a pod without a spec.
    pub(super) fn new(
        context: Arc<NodeContext>,
        pod: Arc<Pod>,
        changes: Changes,
        statuses: watch::Sender<Option<PodStatus>>,
    ) -> Option<Self> {
        let members = Member::all(pod.spec.as_ref()?);
        let mut status = pod.status.clone().unwrap_or_default();
        status.start_time.get_or_insert(Time(Timestamp::now()));
        Some(Self {
            context,
            pod,
            changes,
            members,
            address: None,
            message: String::new(),
            deadline: None,
            status,
            statuses,
        })
    }

    /// Runs the pod until nothing of it runs any more, because it has done its work or is to be deleted.
    pub(super) async fn run(mut self) {
        let folder = self
            .context
            .options
            .directory
            .join("pods")
            .join(self.pod.uid().unwrap_or_default());
        let volumes = Arc::new(Volumes::new(folder));
        let mut mounted = Mounted::new(self.context.clone(), self.changes.clone(), volumes.clone());
        let mut to_be_deleted = self.changes.clone();
        let claim = tokio::select! {
            claim = self.prepare(&mut mounted) => Some(claim),
            () = deletion(&mut to_be_deleted) => None,
        };
        // The address is the pod's until its last process has ended.
        if let Some(_claim) = claim {
            tokio::select! {
                () = async { self.pull().await; self.run_containers(&volumes).await } => {}
                never = mounted.keep_fresh() => match never {},
            }
        }
        volumes.remove();
    }

    /// Gets the pod its volumes and its address.
    async fn prepare(&mut self, mounted: &mut Mounted) -> Option<AddressClaim> {
        loop {
            let changes = self.context.objects.changes();
            let Err(missing) = mounted.write().await else {
                break;
            };
            self.wait_because(missing.to_string());
            mounted.chance(changes, RETRY).await;
        }
        if self
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.host_network)
            .unwrap_or_default()
        {
            self.address = Some(self.context.host);
            return None;
        }
        loop {
            match self.context.addresses.claim() {
                Ok(claim) => {
                    self.address = Some(claim.ip);
                    return Some(claim);
                }
                Err(error) => self.wait_because(error.to_string()),
            }
            sleep(RETRY).await;
        }
    }

    /// Waits as long as the images take that its containers run.
    async fn pull(&mut self) {
        let time = self.context.options.pull_time;
        if time.is_zero() {
            return;
        }
        self.wait_because("waiting for the images".to_owned());
        let mut changes = self.changes.clone();
        tokio::select! {
            () = sleep(time) => {}
            () = deletion(&mut changes) => {}
        }
    }

    /// Starts and stops containers until none is left.
    async fn run_containers(&mut self, volumes: &Arc<Volumes>) {
        self.message.clear();
        let (reports, mut received) = mpsc::unbounded_channel();
        let mut handles: Vec<Option<Handle>> = self.members.iter().map(|_| None).collect();
        loop {
            self.publish();
            match PodAction::of(&self.members, self.deadline.is_some()) {
                PodAction::Start(number) => {
                    let Some(task) = self.task(number, volumes, &reports) else {
                        return;
                    };
                    handles[number] = Some(task.start());
                    self.members[number].start();
                    continue;
                }
                PodAction::Stop(numbers) => {
                    let grace = self.grace(None);
                    let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + grace);
                    for handle in numbers.into_iter().filter_map(|number| handles[number].as_ref()) {
                        handle.stop(deadline);
                    }
                }
                PodAction::Wait => {}
                PodAction::End => return,
            }
            tokio::select! {
                Some(report) = received.recv() => self.take(report),
                () = changed(&mut self.changes) => self.look(),
            }
        }
    }

    fn task(
        &self,
        number: usize,
        volumes: &Arc<Volumes>,
        reports: &mpsc::UnboundedSender<ContainerReport>,
    ) -> Option<Task> {
        let member = &self.members[number];
        Some(Task {
            context: self.context.clone(),
            pod: self.changes.clone(),
            container: member.container.clone(),
            role: member.role,
            address: self.address?,
            volumes: volumes.clone(),
            reports: reports.clone(),
        })
    }

    fn take(&mut self, report: ContainerReport) {
        if let Some(member) = self
            .members
            .iter_mut()
            .find(|member| member.container.name == report.container)
        {
            member.state = Some(report.state);
        }
    }

    /// Takes in what the API says of the pod now: above all, until when it may live.
    fn look(&mut self) {
        let now = Instant::now();
        let pod = self.changes.borrow_and_update().clone();
        let limit = match pod {
            None => Some(now),
            Some(pod) => {
                self.pod = pod;
                let deleted = self.pod.metadata.deletion_timestamp.is_some();
                deleted.then(|| now + self.grace(self.pod.metadata.deletion_grace_period_seconds))
            }
        };
        // A second deletion may cut the grace period short, never draw it out.
        self.deadline = match (self.deadline, limit) {
            (Some(known), Some(limit)) => Some(known.min(limit)),
            (known, limit) => known.or(limit),
        };
    }

    fn grace(&self, seconds: Option<i64>) -> Duration {
        let own = |spec: &PodSpec| spec.termination_grace_period_seconds;
        let seconds = seconds
            .or_else(|| self.pod.spec.as_ref().and_then(own))
            .unwrap_or(30);
        Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    }

    fn wait_because(&mut self, message: String) {
        self.message = message;
        self.publish();
    }

    fn publish(&mut self) {
        let view = View {
            pod: &self.pod,
            host: self.context.host,
            address: self.address,
            members: &self.members,
            message: &self.message,
            ending: self.deadline.is_some(),
        };
        let status = status::of(&view, &self.status, Timestamp::now());
        self.statuses.send_if_modified(|published| {
            let news = published.as_ref() != Some(&status);
            *published = Some(status.clone());
            news
        });
        self.status = status;
    }
}
