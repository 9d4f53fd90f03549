//! Replicas in network namespaces: partitions in the kernel's own network, by a wrong neighbour entry that makes packets
//! vanish without a sign.
//!
//! What it promises: the namespace and its cable go with the value, and nothing else of the machine's network is touched.
//! Only root can make one.

use std::process::Command;

use crate::{
    site::{Replica, Site},
    skip::is_root,
};

/// What nobody has.
const NOBODY: &str = "02:00:5e:00:00:01";

/// A namespace with one cable to this machine; gone with the value.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    here: String,
    there: String,
    network: String,
}

/// Where packets get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// On their way to the servers.
    FromReplica,
    /// On their way back.
    ToReplica,
    /// A machine that has vanished.
    Both,
}

fn ip(arguments: &str) -> bool {
    let done = Command::new("ip")
        .args(arguments.split_whitespace())
        .output();
    done.is_ok_and(|output| output.status.success())
}

impl Namespace {
    /// Nothing where this machine does not allow it.
    pub fn make(number: u8) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let process = std::process::id();
        let name = format!("pj{process}x{number}");
        let net = format!("10.231.{}.{}", process % 250, u32::from(number) * 4);
        let at = |last: u8| format!("10.231.{}.{}", process % 250, number * 4 + last);
        let own = Self {
            name,
            here: at(1),
            there: at(2),
            network: format!("{net}/30"),
        };
        let Self {
            name, here, there, ..
        } = &own;
        let made = [
            format!("netns add {name}"),
            format!("link add {name}a type veth peer name {name}b netns {name}"),
            format!("addr add {here}/30 dev {name}a"),
            format!("link set {name}a up"),
            format!("-n {name} addr add {there}/30 dev {name}b"),
            format!("-n {name} link set {name}b up"),
            format!("-n {name} link set lo up"),
        ]
        .iter()
        .all(|arguments| ip(arguments));
        made.then_some(own)
    }

    /// This machine's address at the cable: where the server has to listen.
    pub fn here(&self) -> &str {
        &self.here
    }

    /// All addresses at the cable: whom the server has to let in.
    pub fn network(&self) -> &str {
        &self.network
    }

    /// A replica of the site in here.
    pub fn replica<'a>(&self, site: &'a Site, node: &str) -> Replica<'a> {
        let inner = site.program(&["run"]);
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.name])
            .arg(inner.get_program())
            .args(inner.get_args())
            .current_dir(inner.get_current_dir().expect("the site has a folder"));
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let (store, model) = site.urls();
        command
            .env("ES_DATABASE_URL", store.replace("127.0.0.1", &self.here))
            .env("DATABASE_URL", model.replace("127.0.0.1", &self.here))
            .env("PROJECTOR_HTTP_LISTEN", format!("{}:0", self.there));
        site.replica_from(node, command)
    }

    /// From now on packets vanish without a sign.
    pub fn cut(&self, lost: Lost) {
        let Self {
            name, here, there, ..
        } = self;
        if lost != Lost::ToReplica {
            let gone =
                format!("-n {name} neigh replace {here} lladdr {NOBODY} dev {name}b nud permanent");
            assert!(ip(&gone), "{gone}");
        }
        if lost != Lost::FromReplica {
            let gone = format!("neigh replace {there} lladdr {NOBODY} dev {name}a nud permanent");
            assert!(ip(&gone), "{gone}");
        }
    }

    /// They arrive again.
    pub fn heal(&self) {
        let Self {
            name, here, there, ..
        } = self;
        ip(&format!("-n {name} neigh del {here} dev {name}b"));
        ip(&format!("neigh del {there} dev {name}a"));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The cable goes with it.
        ip(&format!("netns del {}", self.name));
        ip(&format!("link del {}a", self.name));
    }
}
