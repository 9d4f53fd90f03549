//! Nothing left: connection slots, and room on the disk.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use projector_testkit::ServerOptions;
use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Session, Site};
use projector_testkit::skip::{is_root, skipped};

use crate::support::*;

/// Opens sessions until the server refuses one.
fn fill(site: &Site, sessions: &mut Vec<Session>) {
    site.eventually("every connection is taken", || {
        let mut session = site.session();
        if session.run("select 1") == "1" {
            sessions.push(session);
            return None;
        }
        Some(())
    });
}

#[test]
fn without_connection_slots_the_lock_is_kept_and_the_reason_is_named() {
    let options = ServerOptions::default().setting("max_connections", "22");
    let site = Site::own_server_with(programs(), Databases::One, QUICK, options);
    let mut generator = Generator::new(141);
    let leader = site.leader("a");
    site.append(&generator.lines(40), 20);
    site.all_is_right_at_the_head();
    let before = term(&site);
    let mut sessions = vec![site.session()];
    fill(&site, &mut sessions);
    // Whoever needs a session now gets none. The leader may win the race for the slot that is freed here.
    site.eventually("the leader is refused a session", || {
        sessions[0].run(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like '%/a/write'",
        );
        fill(&site, &mut sessions);
        append_in(&mut sessions[0], &mut generator, 1);
        let log = leader.log();
        (log.contains("too many clients") || log.contains("53300")).then_some(())
    });
    let late = site.replica("late");
    late.logs("too many clients");
    assert_eq!(late.code("/livez"), 200);
    assert!(leader.leads(), "the lock session was there before");
    sessions.clear();
    site.all_is_right_at_the_head();
    assert_eq!(term(&site), before, "nobody stepped down");
    late.stands_by_eventually();
    ends_well(&site, &mut generator, &[&late, &leader]);
}

/// A file system of its own in memory; gone with the value.
struct Disk(PathBuf);

impl Disk {
    fn mount(megabytes: u32) -> Option<Self> {
        let place = std::env::temp_dir().join(format!("projector-disk-{}", std::process::id()));
        fs::create_dir_all(&place).ok()?;
        let size = format!("size={megabytes}m,mode=0777");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&place)
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(Self(place))
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Takes what is free.
    fn fill(&self) {
        let mut file = File::create(self.ballast()).expect("a file");
        let zeros = vec![0; 64 * 1024];
        while file.write_all(&zeros).is_ok() {}
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_full_disk_is_waited_out_and_blames_no_event() {
    let what = "a full disk";
    if !is_root() || !Path::new("/usr/bin/mount").exists() {
        return skipped(what, "only root may mount a small file system");
    }
    let Some(disk) = Disk::mount(200) else {
        return skipped(what, "tmpfs cannot be mounted here");
    };
    let options = ServerOptions::default()
        .folder(&disk.0)
        .setting("min_wal_size", "32MB")
        .setting("max_wal_size", "32MB");
    let site = Site::own_server_with(programs(), Databases::One, QUICK, options);
    let mut generator = Generator::new(142);
    let replicas = [site.leader("a"), site.replica("b")];
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    disk.fill();
    // New pages for tables and for the log: one of them finds no room.
    let mut session = site.session();
    site.eventually("the server has no room", || {
        if session.run("create table if not exists ballast (t text)").is_empty() {
            session.run("insert into ballast select repeat(md5(n::text), 50) from generate_series(1, 3000) n");
        }
        let file = site.write("more.ndjson", &generator.lines(40));
        let answer = site.run(&["append", &file, "--batch", "20"]);
        // The server's own log is on the full disk, too.
        (answer.code != 0).then_some(())
    });
    for replica in &replicas {
        assert_eq!(replica.code("/livez"), 200, "{}", replica.node());
    }
    drop(session);
    fs::remove_file(disk.ballast()).expect("it is there");
    // A server that found no room for its log has ended, as it should.
    if site.server().has_ended() {
        site.server().start_again().expect("it starts");
    }
    until(&site, "one of them leads", || {
        replicas.iter().any(|replica| replica.leads())
    });
    site.all_is_right_at_the_head();
    let blamed =
        site.model("select count(*) from projector.checkpoints where failure_position is not null");
    assert_eq!(blamed, "0", "an event was blamed for the disk");
    ends_well(&site, &mut generator, &[&replicas[0], &replicas[1]]);
}
