//! Partitions in the kernel's own network: a replica in a network namespace, and a wrong neighbour entry that makes
//! packets vanish without a sign, in both directions or in one.

use std::process::Command;
use std::time::{Duration, Instant};

use projector_testkit::ServerOptions;
use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Replica, Site};
use projector_testkit::skip::{is_root, skipped};

use crate::support::*;

/// What nobody has.
const NOBODY: &str = "02:00:5e:00:00:01";

/// A namespace with one cable to this machine; gone with the value.
struct Namespace {
    name: String,
    here: String,
    there: String,
    network: String,
}

/// Where packets get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    FromReplica,
    ToReplica,
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
    fn make(number: u8) -> Option<Self> {
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

    /// A replica of the site in here.
    fn replica<'a>(&self, site: &'a Site, node: &str) -> Replica<'a> {
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
        let (store, _) = site.urls();
        let url = store.replace("127.0.0.1", &self.here);
        command
            .env("ES_DATABASE_URL", &url)
            .env("DATABASE_URL", &url)
            .env("PROJECTOR_HTTP_LISTEN", format!("{}:0", self.there));
        site.replica_from(node, command)
    }

    fn cut(&self, lost: Lost) {
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

    fn heal(&self) {
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

fn a_leader_in_a_namespace_is_cut_off(number: u8, lost: Lost, in_a_batch: bool) {
    let Some(namespace) = Namespace::make(number) else {
        return skipped(
            &format!("a partition in the kernel, packets lost {lost:?}, in a batch {in_a_batch}"),
            "network namespaces need root and `ip`",
        );
    };
    let options = ServerOptions::default()
        .setting("listen_addresses", format!("127.0.0.1,{}", namespace.here))
        .trust(&namespace.network);
    let site = Site::own_server_with(programs(), Databases::One, QUICK, options);
    let mut generator = Generator::new(171);
    let far = namespace.replica(&site, "far");
    far.leads_eventually();
    site.begun();
    let near = site.replica("near");
    near.stands_by_eventually();
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    let mut blocker = site.model_session();
    if in_a_batch {
        blocker.run("begin; lock table order_g1.orders in share mode");
        site.append(&generator.lines(60), 60);
        a_batch_waits(&site, "far");
    } else {
        // Otherwise the cut would hit data in flight, which is the other case.
        until(&site, "the far replica is idle", || {
            site.store("select count(*) from pg_stat_activity where application_name like '%/far/%' and state <> 'idle'") == "0"
        });
    }

    let cut = Instant::now();
    namespace.cut(lost);
    far.logs("leadership ends");
    let stopped = cut.elapsed();
    blocker.run("rollback");
    near.leads_eventually();
    let took = cut.elapsed();
    eprintln!("{lost:?}, in a batch {in_a_batch}: stopped {stopped:?}, taken over {took:?}");
    assert!(stopped <= LOCAL_LEASE + SLACK, "stopped after {stopped:?}");
    let blocked = Duration::from_secs(if in_a_batch { 3 } else { 0 });
    let bound = SERVER_LEASE + RETRY_INTERVAL + blocked + SLACK;
    assert!(took <= bound, "taken over after {took:?}");
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    namespace.heal();
    far.stands_by_eventually();
    assert!(near.leads(), "leadership stays where it went");
    ends_well(&site, &mut generator, &[&far, &near]);
}

#[test]
fn packets_vanish_both_ways_around_an_idle_leader() {
    a_leader_in_a_namespace_is_cut_off(1, Lost::Both, false);
}

#[test]
fn packets_vanish_both_ways_around_a_batch() {
    a_leader_in_a_namespace_is_cut_off(2, Lost::Both, true);
}

#[test]
fn packets_of_the_leader_vanish() {
    a_leader_in_a_namespace_is_cut_off(3, Lost::FromReplica, false);
}

#[test]
fn packets_to_the_leader_vanish() {
    a_leader_in_a_namespace_is_cut_off(4, Lost::ToReplica, false);
}
