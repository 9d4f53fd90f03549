//! One process of the program, and what may happen to it.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Site, http, report::Trace};

/// A replica; it ends with the value.
#[derive(Debug)]
pub struct Replica<'a> {
    site: &'a Site,
    node: String,
    child: Mutex<Child>,
    pid: Pid,
    log: PathBuf,
}

impl Site {
    /// Starts a replica.
    pub fn replica(&self, node: &str) -> Replica<'_> {
        self.replica_with(node, &["run"], &[])
    }

    /// Starts one with other arguments, and with other variables in its environment.
    pub fn replica_with(
        &self,
        node: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Replica<'_> {
        let mut command = self.program(arguments);
        command.envs(variables.iter().copied());
        self.replica_from(node, command)
    }

    /// Starts one with a command that was made of [`Site::program`].
    pub fn replica_from(&self, node: &str, mut command: Command) -> Replica<'_> {
        let number = self.traces().len();
        let log = self.folder.path().join(format!("{number}-{node}.log"));
        let file = fs::File::create(&log).expect("there is room");
        command
            .env("PROJECTOR_NODE", node)
            .stdout(Stdio::null())
            .stderr(file);
        let child = command.spawn().expect("the program can be started");
        let pid = Pid::from_child(&child);
        self.traces().push(Trace {
            node: node.to_owned(),
            log: log.clone(),
        });
        Replica {
            site: self,
            node: node.to_owned(),
            child: Mutex::new(child),
            pid,
            log,
        }
    }

    /// Starts a replica with any plugins, and waits until it leads and has begun with one.
    pub fn leader_of_one(&self, node: &str) -> Replica<'_> {
        let replica = self.replica(node);
        replica.leads_eventually();
        self.eventually("a projection has begun", || {
            (self.model("select count(*) > 0 from projector.checkpoints") == "t").then_some(())
        });
        replica
    }

    /// Starts a replica and waits until it leads.
    pub fn leader(&self, node: &str) -> Replica<'_> {
        let replica = self.replica(node);
        replica.leads_eventually();
        self.begun();
        replica
    }
}

impl Replica<'_> {
    /// Its name.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// All that it logged.
    pub fn log(&self) -> String {
        read(&self.log)
    }

    /// Waits until it has logged this.
    pub fn logs(&self, text: &str) {
        let what = format!("{} logs {text:?}", self.node);
        self.site
            .eventually(&what, || self.log().contains(text).then_some(()));
    }

    /// Where it answers HTTP.
    pub fn address(&self) -> SocketAddr {
        let what = format!("{} listens", self.node);
        self.site.eventually(&what, || address(&self.log))
    }

    /// One GET.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        http::get(address(&self.log)?, path)
    }

    /// Its status code; 0 when nobody answers.
    pub fn code(&self, path: &str) -> u16 {
        self.get(path).map_or(0, |(code, _)| code)
    }

    /// Whether it says that it leads.
    pub fn leads(&self) -> bool {
        self.code("/leaderz") == 200
    }

    /// Its role, in its own word.
    pub fn role(&self) -> String {
        let body = self
            .get("/leaderz")
            .map(|(_, body)| body)
            .unwrap_or_default();
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        answer["role"].as_str().unwrap_or("no answer").to_owned()
    }

    /// A number from `/metrics`, summed over its labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let (_, page) = self.get("/metrics")?;
        let numbers = page.lines().filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        Some(
            numbers
                .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                .sum(),
        )
    }

    /// Waits until it leads.
    pub fn leads_eventually(&self) {
        let what = format!("{} leads", self.node);
        self.site.eventually(&what, || self.leads().then_some(()));
    }

    /// Waits until it is a standby that knows who leads.
    pub fn stands_by_eventually(&self) {
        let what = format!("{} stands by", self.node);
        self.site.eventually(&what, || {
            let (_, body) = self.get("/readyz")?;
            let answer: Value = serde_json::from_str(&body).ok()?;
            (answer["role"] == "follower" && answer["denied"]["holder"].is_string()).then_some(())
        });
    }

    /// Waits until it is ready.
    pub fn ready_eventually(&self) {
        let what = format!("{} is ready", self.node);
        self.site
            .eventually(&what, || (self.code("/readyz") == 200).then_some(()));
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        // If it has ended by itself, the test finds that out in another way.
        let _ = kill_process(self.pid, signal);
    }

    /// As if the machine had lost it.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        self.exit_code();
    }

    /// Stops it in the middle of whatever it does.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.pid.as_raw_nonzero());
        self.site.eventually("the process stands still", || {
            let stat = fs::read_to_string(&stat).ok()?;
            stat.rsplit(')')
                .next()?
                .trim_start()
                .starts_with('T')
                .then_some(())
        });
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for its end; -1 for a signal.
    pub fn exit_code(&self) -> i32 {
        let what = format!("{} ends", self.node);
        self.site.eventually(&what, || self.ended())
    }

    /// Its exit code if it has ended.
    pub fn ended(&self) -> Option<i32> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let status = child.try_wait().expect("the process is ours")?;
        Some(status.code().unwrap_or(-1))
    }

    /// Asks it to end and wants that it ends well.
    pub fn stop(&self) {
        self.terminate();
        self.ends_well();
    }

    /// Waits for its end, which must be a good one.
    pub fn ends_well(&self) {
        let code = self.exit_code();
        if code != 0 {
            self.site.fail(&format!("{} ended with {code}", self.node));
        }
    }
}

impl Drop for Replica<'_> {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Also a stopped process dies of this; an ended one does not mind.
        let _ = child.kill();
        let _ = child.wait();
    }
}

pub(super) fn read(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

pub(super) fn address(log: &Path) -> Option<SocketAddr> {
    let log = read(log);
    let rest = log.split_once("address=")?.1;
    rest.split_whitespace().next()?.parse().ok()
}
