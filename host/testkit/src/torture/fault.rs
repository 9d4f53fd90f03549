//! The faults. Each says whether it was observed: a process gone, a session gone, a lock waited for, a term claimed.

use std::time::Duration;

use super::{Scope, load::append, world::World};
use crate::{
    Mode,
    domain::{Generator, PROJECTIONS},
    proxy::{Close, Link, LostCommit, Silence},
    site::Session,
};

type Fault = fn(&mut World<'_>) -> bool;

/// All kinds, with their names in the report.
pub(super) const ALL: [(&str, Fault); 30] = [
    ("the leader is killed", |world| {
        let leader = world.leader();
        kill(world, leader)
    }),
    ("a standby is killed", |world| {
        let standby = world.standby();
        kill(world, standby)
    }),
    ("all replicas are killed", |world| {
        (0..world.slots.len()).all(|slot| kill(world, slot))
    }),
    ("the leader is told to end", |world| {
        let leader = world.leader();
        end(world, leader)
    }),
    ("a replica is told to end twice", told_twice),
    ("all replicas are told to end", |world| {
        world.coverage.sample(&world.slots);
        for slot in &world.slots {
            slot.replica().terminate();
        }
        (0..world.slots.len()).all(|slot| ends(world, slot))
    }),
    ("a replica is told to end during an outage", end_in_outage),
    ("the replicas are restarted one by one", |world| {
        (0..world.slots.len()).all(|slot| end(world, slot))
    }),
    ("the leader is asked to resign", |world| {
        world.leader();
        let mut arguments = vec!["leader", "resign", "--timeout", "20s"];
        if world.scope == Scope::Projection {
            let projection: &&str = world.random.pick(&PROJECTIONS);
            arguments.extend(["--projection", projection]);
        }
        world.site.run(&arguments).code == 0
    }),
    ("the leader is frozen below its lease", |world| {
        let leader = world.leader();
        freeze(world, &[leader], Duration::from_millis(700))
    }),
    ("the leader is frozen beyond its lease", |world| {
        let (leader, claims) = (world.leader(), world.claims());
        world.slots[leader].replica().freeze();
        world.claimed_after(claims);
        world.slots[leader].replica().thaw();
        follows_or_leads(world, leader)
    }),
    ("all replicas are frozen beyond their leases", |world| {
        let first = world.any();
        let order: Vec<usize> = (0..3).map(|next| (first + next) % 3).collect();
        freeze(world, &order, Duration::from_millis(3_500))
    }),
    ("a leader's lock session ends", |world| {
        world.works();
        let claims = world.claims();
        let ended = world.site.store(HOLDERS_END) != "0";
        world.claimed_after(claims);
        ended
    }),
    ("all lock sessions end", |world| {
        world.leader();
        let claims = world.claims();
        let ended = world.site.end_sessions(&["lock"]) > 0;
        world.claimed_after(claims);
        ended
    }),
    ("read sessions end", |world| sessions_end(world, &["read"])),
    ("write sessions end", |world| {
        sessions_end(world, &["write"])
    }),
    ("listening sessions end", |world| {
        world.leader();
        // It listens a moment after it leads.
        world
            .site
            .eventually("there are listening sessions to end", || {
                (world.site.end_sessions(&["listen"]) > 0).then_some(())
            });
        world.wait(Duration::from_millis(700));
        true
    }),
    ("all sessions end", |world| {
        sessions_end(world, &["lock", "listen", "read", "write", "lookup"])
    }),
    ("a server is restarted", |world| restart(world, Mode::Fast)),
    ("a server crashes", |world| restart(world, Mode::Immediate)),
    ("a server is away", |world| {
        let number = world.random.below(world.site.servers().len() as u64) as usize;
        let server = &world.site.servers()[number];
        let stopped = server.stop(Mode::Fast).is_ok();
        world.wait(Duration::from_secs(2));
        server.start_again().expect("its data are whole");
        stopped
    }),
    ("somebody holds a checkpoint", |world| {
        somebody_holds(
            world,
            "select from projector.checkpoints where projection = 'order' for update",
        )
    }),
    ("somebody holds a table", |world| {
        somebody_holds(world, "lock table order_g1.orders in share mode")
    }),
    ("a claim arrives late", late_claim),
    ("the leader's network is silent", |world| {
        silence(world, Link::default().silent(Silence::Both))
    }),
    ("the lock session's answers are lost", |world| {
        silence(
            world,
            Link::default().silent(Silence::ToClient).only("lock"),
        )
    }),
    ("connections are reset", |world| {
        let slot = world.any();
        let how = *world.random.pick(&[
            Close::Reset,
            Close::Finish,
            Close::HalfToClient,
            Close::HalfToServer,
        ]);
        let networks = &world.slots[slot].networks;
        let closed: usize = networks.iter().map(|network| network.close(how)).sum();
        closed > 0
    }),
    ("networks are slow and cut into pieces", |world| {
        let ms = Duration::from_millis;
        for slot in &world.slots {
            for network in &slot.networks {
                network.link(Link::default().latency(ms(5), ms(20)).slices(3));
            }
        }
        world.wait(ms(2_000));
        for slot in &world.slots {
            slot.networks.iter().for_each(crate::proxy::Proxy::heal);
        }
        true
    }),
    ("commits are lost", commits_are_lost),
    ("a writer takes its time", slow_writer),
];

/// The number of a fault.
pub(super) fn number(name: &str) -> usize {
    ALL.iter()
        .position(|(other, _)| *other == name)
        .expect("goals name faults")
}

/// Whoever holds a leader lock; the locks of writers are of the other form.
const HOLDERS_END: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
    where application_name like 'projector/%/lock' and pid in \
    (select pid from pg_locks where locktype = 'advisory' and granted and objsubid = 1)";

/// Of one row of `leadership`, with the checkpoints that it stands for.
const LATE_CLAIM: &str = "
    with taken as (
        update projector.leadership
        set term = (select max(term) + 1 from projector.leadership), term_id = gen_random_uuid()
        where \"group\" = (select \"group\" from projector.leadership order by since desc limit 1)
        returning \"group\", term, term_id)
    update projector.checkpoints c set term = t.term, term_id = t.term_id
    from taken t where t.\"group\" in ('default', 'default/' || c.projection)";

fn kill(world: &mut World<'_>, slot: usize) -> bool {
    world.coverage.sample(&world.slots);
    world.slots[slot].replica().kill();
    let gone = world.slots[slot].replica().ended() == Some(-1);
    world.pause(Duration::from_millis(500));
    world.start(slot);
    gone
}

fn end(world: &mut World<'_>, slot: usize) -> bool {
    world.coverage.sample(&world.slots);
    world.slots[slot].replica().terminate();
    ends(world, slot)
}

/// One that was told to end does so, and well.
fn ends(world: &mut World<'_>, slot: usize) -> bool {
    world.slots[slot].replica().ends_well();
    world.start(slot);
    // Whatever comes next meets it as it starts, or a little later.
    world.pause(Duration::from_millis(300));
    true
}

fn told_twice(world: &mut World<'_>) -> bool {
    world.coverage.sample(&world.slots);
    let slot = world.any();
    world.slots[slot].replica().terminate();
    world.pause(Duration::from_millis(50));
    world.slots[slot].replica().terminate();
    // 0 when it was faster than the second signal.
    let code = world.slots[slot].replica().exit_code();
    world.start(slot);
    matches!(code, 0 | 1)
}

fn end_in_outage(world: &mut World<'_>) -> bool {
    world.coverage.sample(&world.slots);
    let slot = world.any();
    for server in world.site.servers() {
        server.stop(Mode::Immediate).expect("it runs");
    }
    world.slots[slot].replica().terminate();
    world.slots[slot].replica().ends_well();
    for server in world.site.servers() {
        server.start_again().expect("its data are whole");
    }
    world.start(slot);
    true
}

fn freeze(world: &mut World<'_>, slots: &[usize], time: Duration) -> bool {
    for slot in slots {
        world.slots[*slot].replica().freeze();
    }
    world.wait(time);
    for slot in slots {
        world.slots[*slot].replica().thaw();
        world.pause(Duration::from_millis(100));
    }
    slots.iter().all(|slot| follows_or_leads(world, *slot))
}

fn follows_or_leads(world: &World<'_>, slot: usize) -> bool {
    world.site.eventually("it takes part again", || {
        matches!(
            world.slots[slot].replica().role().as_str(),
            "follower" | "leading"
        )
        .then_some(true)
    })
}

fn sessions_end(world: &mut World<'_>, purposes: &[&str]) -> bool {
    world.leader();
    world.site.end_sessions(purposes) > 0
}

fn restart(world: &mut World<'_>, mode: Mode) -> bool {
    let number = world.random.below(world.site.servers().len() as u64) as usize;
    let server = &world.site.servers()[number];
    let before = server.pid();
    server.restart(mode).expect("its data are whole");
    server.pid() != before
}

/// Below the lock time-out, or beyond it.
fn somebody_holds(world: &mut World<'_>, lock: &str) -> bool {
    world.leader();
    let mut somebody = world.site.model_session();
    somebody.run("begin");
    somebody.run(lock);
    let waiting = "select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock' \
                   and application_name like 'projector/%/write' and datname = current_database()";
    let waited = world.site.eventually("a batch waits", || {
        (world.site.model(waiting) == "t").then_some(true)
    });
    let time = *world.random.pick(&[300, 3_300]);
    world.wait(Duration::from_millis(time));
    somebody.run("rollback");
    waited
}

/// A claim whose sender is gone: it takes the term away from a leader that has its lock and its lease.
fn late_claim(world: &mut World<'_>) -> bool {
    world.works();
    let claims = world.claims();
    let mut somebody = world.site.model_session();
    somebody.run("begin");
    somebody.run("set local lock_timeout = '2s'");
    somebody.run(LATE_CLAIM);
    somebody.run("commit");
    if world.claims() == claims {
        return false;
    }
    world.claimed_after(claims + 1);
    true
}

fn silence(world: &mut World<'_>, link: Link) -> bool {
    let (leader, claims) = (world.leader(), world.claims());
    for network in &world.slots[leader].networks {
        network.link(link.clone());
    }
    world.claimed_after(claims);
    world.pause(Duration::from_millis(1_000));
    for network in &world.slots[leader].networks {
        network.heal();
    }
    follows_or_leads(world, leader)
}

fn commits_are_lost(world: &mut World<'_>) -> bool {
    let how = *world.random.pick(&[
        LostCommit::Request,
        LostCommit::Reply,
        LostCommit::ReplySilently,
    ]);
    let network = &world.slots[world.leader()].networks[1];
    let before = network.lost_commits();
    network.lose_commits(how, 2);
    world.wait(Duration::from_millis(1_000));
    network.lose_commits(how, 0);
    if how == LostCommit::ReplySilently {
        // What a network does in the end with a connection that it has lost.
        world.wait(Duration::from_millis(1_000));
        network.close(Close::Reset);
    }
    network.lost_commits() > before
}

/// It idles after its insert; then it commits, or not, or prepares first.
fn slow_writer(world: &mut World<'_>) -> bool {
    world.leader();
    let mut writer: Session = world.site.session();
    let mut generator = Generator::new(world.random.number());
    writer.run("set lock_timeout = '2s'");
    writer.run("begin");
    writer.run("set local projector.notify = 'off'");
    append(&mut writer, &generator.draft());
    let alive = writer.run("select 'alive'") == "alive";
    world.wait(Duration::from_millis(1_200));
    let how = *world.random.pick(&["commit", "rollback"]);
    if world.random.percent(50) {
        writer.run("prepare transaction 'nemesis'");
        world.wait(Duration::from_millis(500));
        writer.run(&format!("{how} prepared 'nemesis'"));
    } else {
        writer.run(how);
    }
    alive
}
