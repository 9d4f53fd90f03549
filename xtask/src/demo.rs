//! `cargo xtask demo`: the whole thing on this machine, and nothing left of it afterwards.
//!
//! A private PostgreSQL, 2,000 events, the shipped plugins, and the host as a user would run it: every command is
//! shown as it is called.

mod site;

use anyhow::{Result, bail};
use projector_testkit::{Server, ServerOptions};

use crate::{generated::build_host, interrupt::Interrupt, plugins, postgres, sample, steps::Steps};
use site::Site;

/// What is shown of the read models: (title, names of the columns, query).
const SHOWN: [(&str, &str, &str); 3] = [
    (
        "orders by status (read_model.order_totals)",
        "status|orders|amount",
        "select status, sum(orders), to_char(sum(amount_cents) / 100.0, 'FM999,999,990.00') from read_model.order_totals
         group by status having sum(orders) > 0 order by sum(orders) desc",
    ),
    (
        "the last orders (read_model.orders)",
        "order|status|settlement|amount|at position",
        "select left(order_uuid::text, 8), status, settlement_status, to_char(amount_cents / 100.0, 'FM999,990.00'), \
         last_position from read_model.orders order by last_position desc limit 5",
    ),
    (
        "the busiest workers (read_model.worker_load)",
        "worker|planned|done",
        "select left(worker_uuid::text, 8), coalesce(sum(schedules) filter (where status = 'planned'), 0), \
         coalesce(sum(schedules) filter (where status = 'done'), 0) from read_model.worker_load \
         group by merchant_id, worker_uuid order by sum(schedules) desc, worker_uuid limit 5",
    ),
];

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ends once everything is projected
    #[arg(long)]
    once: bool,
    /// Port of HTTP; 7400 if that is free
    #[arg(long)]
    port: Option<u16>,
}

/// Shows it.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::begin();
    let program = steps.run("build the host", build_host)?;
    steps.run("build the plugins", || plugins::build(None))?;
    let installation = steps.run("find PostgreSQL", || postgres::provide(None))?;

    // From here on there is something to clear away.
    let interrupt = Interrupt::listen()?;
    let options = ServerOptions::default().installation(installation);
    let server = steps.run("start a private PostgreSQL", || Ok(Server::start(options)?))?;
    let site = steps.run("create two databases and a config", || {
        Site::create(&server, program, arguments.port)
    })?;
    let events = sample::shipped();
    let commands: [&[&str]; 4] = [
        &["migrate", "up"],
        &["append", &events.to_string_lossy()],
        &["run", "--until-caught-up", "--timeout", "120s"],
        &["status"],
    ];
    for command in commands {
        if interrupt.asked() {
            bail!("interrupted");
        }
        let name = format!("projector-host {}", command.join(" "));
        steps.run(&name, || site.run(command, &interrupt))?;
    }
    for (title, columns, query) in SHOWN {
        println!(
            "\n{title}\n{}",
            table(columns, &server.psql(site::READ_MODEL, query)?)
        );
    }
    println!("\nprojected and shown after {}", steps.elapsed());
    if !arguments.once {
        println!("{}", site.invitation(&server));
        site.run(&["run"], &interrupt)?;
    }
    Ok(())
}

/// Aligns columns that are split by `|`.
fn table(columns: &str, rows: &str) -> String {
    let lines: Vec<Vec<&str>> = std::iter::once(columns)
        .chain(rows.lines())
        .map(|line| line.split('|').collect())
        .collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|cells| cells.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let line = |cells: &Vec<&str>| {
        let cells = cells
            .iter()
            .enumerate()
            .map(|(column, cell)| format!("  {cell:<0$}", width(column)));
        cells.collect::<String>().trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            table("a|long name|c", "value|1|x\nv|22|"),
            "  a      long name  c\n  value  1          x\n  v      22"
        );
    }
}
