//! The other side: reads one request, loads, answers, ends.
//!
//! Promises: the bounds are in place before the first byte of the file is read.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use wasmtime::component::Component;

use super::{LINE_BYTES_MAX, MEMORY_MAX_BYTES, Reply, Request, TIMEOUT};
use crate::error::{Exit, Failure};
use crate::guest::thread::{panic_text, stack_bytes};
use crate::guest::{Category, Engine, Guest};
use crate::plugin::error::{Error, Relayed, reason};
use crate::plugin::file::{self, sha256};

/// Serves one request on standard input and output.
///
/// # Errors
/// When there is no request, or nobody takes the answer.
pub fn serve() -> Result<(), Failure> {
    let failed = |what: &str| Failure::new(Exit::Failed, what.to_owned());
    goes_with_its_parent();
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    stdin
        .by_ref()
        .take(64 * LINE_BYTES_MAX as u64)
        .read_until(b'\n', &mut line)
        .map_err(|error| failed(&error.to_string()))?;
    let request: Request = serde_json::from_slice(&line)
        .map_err(|_| failed("this command is used by the host itself, which gives it a plugin"))?;
    bound(&request);
    let mut bytes = Vec::new();
    stdin
        .take(file::FILE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error.to_string()))?;
    if bytes.len() != request.bytes {
        return Err(failed("the file did not come whole"));
    }
    let (reply, code) = match load(&request, bytes) {
        Ok((code, described)) => {
            let reply = Reply::Compiled {
                bytes: code.len(),
                sha256: sha256(&code),
                described: described.as_ref().map(Relayed::of),
            };
            (reply, code)
        }
        Err(error) => (Reply::Refused(Relayed::of(&error)), Vec::new()),
    };
    answer(&reply, &code).map_err(|error| failed(&error.to_string()))
}

fn answer(reply: &Reply, code: &[u8]) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.write_all(code)?;
    stdout.flush()
}

/// The code, and why the plugin cannot be asked what it is when it took its whole budget to find that out.
fn load(request: &Request, bytes: Vec<u8>) -> Result<(Vec<u8>, Option<Error>), Error> {
    let bug = |error: &dyn std::fmt::Display| Error::Bug(error.to_string());
    let engine = Engine::new(&request.engine).map_err(|error| bug(&error))?;
    let work = || -> Result<_, Error> {
        let component = file::component(&engine, &bytes)?;
        let compiled = Component::from_binary(engine.wasmtime(), &component.bytes)
            .map_err(|error| Error::Compile(reason(&error)))?;
        let guest = Guest::load(&engine, &compiled)?;
        // The host asks again, and passes on what the plugin logs; this one shows that asking does no harm.
        let described = guest.describe(&request.config_json, &request.limits);
        let long = described
            .err()
            .filter(|error| matches!(error.category, Category::Fuel | Category::Timeout));
        let code = compiled
            .serialize()
            .map_err(|error| Error::Compile(reason(&error)))?;
        Ok((code, long.map(Error::Describe)))
    };
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("plugin-load".to_owned())
            .stack_size(stack_bytes(&engine))
            .spawn_scoped(scope, work)
            .map_err(|error| bug(&error))?;
        worker
            .join()
            .unwrap_or_else(|panic| Err(Error::Bug(panic_text(&*panic))))
    })
}

fn goes_with_its_parent() {
    #[cfg(target_os = "linux")]
    {
        // Where the system refuses either, the bounds below still end it.
        let _ =
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        // When the machine has no memory left, this process is what it can do without.
        drop(std::fs::write("/proc/self/oom_score_adj", "1000"));
    }
}

fn bound(request: &Request) {
    let memory = MEMORY_MAX_BYTES.saturating_add(request.limits.memory_max);
    lower(Resource::Data, memory);
    lower(Resource::Cpu, TIMEOUT.as_secs());
    // What ends it is told by its parent, and files of its memory are of no use to anybody.
    lower(Resource::Core, 0);
}

fn lower(resource: Resource, to: u64) {
    let now = getrlimit(resource).maximum;
    let limit = Some(now.map_or(to, |now| now.min(to)));
    let limits = Rlimit {
        current: limit,
        maximum: limit,
    };
    // Lowering is refused to nobody.
    let _ = setrlimit(resource, limits);
}
