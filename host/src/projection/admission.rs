//! Whether a projection may run in this term, and with which plugin: the one that made its rows, or the file of
//! this replica where a policy or a person says so. The store must be the one that was read.
//!
//! A changed plugin is not the same projection. A store that was restored, or that failed over and lost events,
//! may hold another event where the checkpoint stands, or nothing. What nobody decided stops the projection;
//! `resume` then tells the leader what to take as it finds it.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::database::connections::Connections;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::session::bounded;
use crate::error::{Class, Code};
use crate::event_store::Feed;
use crate::plugin::Plugin;
use crate::plugin::manifest::{Difference, Manifest};
use crate::read_model::checkpoint::{Checkpoint, Checkpoints, Failure as Row};
use crate::read_model::schema::{self, Filler, Generation};
use crate::read_model::{components, folders};

use super::choice::{Case, Choice, Why, choose};
use super::failure::{Failure, PLUGIN_CHANGED, STORE_CHANGED};
use super::roster::{Known, Offer};

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for a change of tables or a plugin's file.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(35);

/// What admission asks with.
pub(super) struct Admission<'a> {
    pub(super) known: &'a Known,
    /// The plugin that ran before in this term, loaded with the same configuration.
    pub(super) ran: Option<&'a Arc<Plugin>>,
    pub(super) feed: &'a Feed,
    pub(super) checkpoints: &'a Checkpoints,
    pub(super) connections: &'a Connections,
    pub(super) readers: &'a Identifier,
}

/// What admission came to.
#[derive(Debug)]
pub(super) enum Admitted {
    /// It may run.
    Run {
        /// With this plugin.
        plugin: Arc<Plugin>,
        /// On these tables.
        generation: Box<Generation>,
    },
    /// Its row says why not.
    Stopped,
    /// No replica has a file for it.
    NoPlugin,
    /// The term is over.
    Fenced,
}

/// The plugin that was chosen, or why there is none.
enum Chosen {
    Plugin(Arc<Plugin>, Box<Generation>),
    /// Stop, with this text.
    Stop(String),
    NoPlugin,
}

impl From<schema::Error> for Failure {
    fn from(error: schema::Error) -> Self {
        Self::transient(error.to_string())
    }
}

impl Admission<'_> {
    /// Whether the projection may run, and with what. When it may not, its row says why. What is said of the
    /// plugin is written into `note` when it changes.
    ///
    /// # Errors
    /// When a database does not answer; to be tried again.
    pub(super) async fn ask(
        &self,
        generation: Generation,
        note: &mut Option<String>,
    ) -> Result<Admitted, Failure> {
        let name = self.connections.database();
        let mut loan = bounded(name, ANSWER_TIMEOUT, self.connections.lend()).await?;
        let asking = self.checkpoints.load(&mut loan, &generation.key);
        let Some(row) = bounded(name, ANSWER_TIMEOUT, asking).await? else {
            return Err(Failure::transient("the checkpoint's row is not there"));
        };
        let fence = self.checkpoints.fence();
        if row.term != fence.term || row.term_id != fence.term_id {
            return Ok(Admitted::Fenced);
        }
        self.known.progress.reached(row.position);
        let chosen = match self.plugin(&mut loan, &generation, &row, note).await {
            Ok(chosen) => chosen,
            Err(schema::Error::Fenced) => return Ok(Admitted::Fenced),
            Err(error) if error.class() == Class::Transient => return Err(error.into()),
            Err(error) => Chosen::Stop(error.to_string()),
        };
        let (plugin, generation) = match chosen {
            Chosen::Plugin(plugin, generation) => (plugin, generation),
            Chosen::NoPlugin => {
                loan.give_back();
                return Ok(Admitted::NoPlugin);
            }
            Chosen::Stop(why) => {
                self.refuse(&mut loan, &generation, &row, PLUGIN_CHANGED, &why)
                    .await?;
                loan.give_back();
                return Ok(Admitted::Stopped);
            }
        };
        // A generation that was emptied has another row now.
        let asking = self.checkpoints.load(&mut loan, &generation.key);
        let row = bounded(name, ANSWER_TIMEOUT, asking).await?.unwrap_or(row);
        let fits = self.store_fits(&mut loan, &generation, &row).await?;
        loan.give_back();
        self.known.progress.reached(row.position);
        Ok(if fits {
            Admitted::Run { plugin, generation }
        } else {
            Admitted::Stopped
        })
    }

    async fn plugin(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        row: &Checkpoint,
        note: &mut Option<String>,
    ) -> Result<Chosen, schema::Error> {
        let declared: Option<Manifest> =
            serde_json::from_value(generation.description.clone()).ok();
        let offer = self.known.offer.as_ref();
        let accepted = row.accepted.as_deref() == Some("plugin");
        let choice = choose(&Case {
            recorded: &generation.sha256,
            declared: declared.as_ref(),
            former: &generation.former,
            file: offer.map(|offer| {
                let plugin = &offer.plugin;
                (
                    plugin.sha256.as_str(),
                    &plugin.manifest,
                    offer.saved.is_some(),
                )
            }),
            broken: self.known.broken,
            on_change: self.known.on_change,
            dev: self.known.dev,
            accepted,
        });
        let (chosen, told) = match (choice, offer) {
            (Choice::File, Some(offer)) => {
                self.keep(connection, &offer.plugin).await?;
                (
                    Chosen::Plugin(offer.plugin.clone(), Box::new(generation.clone())),
                    None,
                )
            }
            (Choice::GoOn, Some(offer)) => (self.go_on(connection, generation, offer).await?, None),
            (Choice::BeginAnew(why), Some(offer)) => (
                self.begin_anew(connection, generation, offer, &why).await?,
                None,
            ),
            (Choice::Recorded(why), offer) => {
                self.recorded(connection, generation, offer, declared.as_ref(), &why)
                    .await?
            }
            (Choice::Neither(why), _) => {
                let text = format!(
                    "{}: with the configuration of today the plugin {} declares other things than the rows have: {}; \
                     put the old configuration back",
                    Code(802),
                    short(&generation.sha256),
                    why.join("; ")
                );
                (Chosen::Stop(text.clone()), Some(text))
            }
            (Choice::File | Choice::GoOn | Choice::BeginAnew(_), None) => (Chosen::NoPlugin, None),
        };
        if accepted && !matches!(chosen, Chosen::Stop(_)) {
            self.checkpoints
                .accepted(connection, &generation.key)
                .await?;
        }
        self.say(connection, generation, &chosen, told, note)
            .await?;
        Ok(chosen)
    }

    /// Keeps the file of the recorded plugin, if that was not done yet.
    async fn keep(
        &self,
        connection: &mut PgConnection,
        plugin: &Plugin,
    ) -> Result<(), schema::Error> {
        let name = self.connections.database();
        let keeping = async {
            let mut transaction = connection.begin().await?;
            if !self.checkpoints.hold_term(&mut transaction).await? {
                return Err(schema::Error::Fenced);
            }
            let control = self.checkpoints.control();
            components::put(&mut transaction, control, &plugin.sha256, &plugin.bytes).await?;
            transaction.commit().await?;
            Ok(())
        };
        in_time(name, keeping).await
    }

    async fn go_on(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        offer: &Offer,
    ) -> Result<Chosen, schema::Error> {
        let (plugin, actor) = (&offer.plugin, self.actor());
        let changing = schema::go_on(
            connection,
            self.checkpoints,
            generation,
            filler(plugin),
            &actor,
        );
        let next = in_time(self.connections.database(), changing).await?;
        tracing::warn!(
            projection = self.known.name,
            from = short(&generation.sha256),
            sha256 = plugin.sha256,
            version = plugin.manifest.version,
            "goes on with another plugin"
        );
        Ok(Chosen::Plugin(plugin.clone(), Box::new(next)))
    }

    async fn begin_anew(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        offer: &Offer,
        why: &[String],
    ) -> Result<Chosen, schema::Error> {
        let (plugin, actor) = (&offer.plugin, self.actor());
        let changing = schema::begin_anew(
            connection,
            self.checkpoints,
            self.readers,
            generation,
            filler(plugin),
            &actor,
        );
        let (next, emptied) = in_time(self.connections.database(), changing).await?;
        let rows: Vec<String> = emptied
            .rows
            .iter()
            .map(|(table, rows)| format!("{rows} of {table}"))
            .collect();
        tracing::warn!(
            projection = self.known.name,
            code = %Code(811),
            from = short(&generation.sha256),
            sha256 = plugin.sha256,
            version = plugin.manifest.version,
            why = why.join("; "),
            after = generation.start.0,
            "THE PROJECTION BEGINS ANEW with another plugin; these rows are gone: {}",
            rows.join(", ")
        );
        self.known.progress.reached(generation.start);
        Ok(Chosen::Plugin(plugin.clone(), Box::new(next)))
    }

    /// The recorded plugin: the one that ran before, or the kept one.
    async fn recorded(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        offer: Option<&Offer>,
        declared: Option<&Manifest>,
        why: &Why,
    ) -> Result<(Chosen, Option<String>), schema::Error> {
        let name = &self.known.name;
        let because = match (why, offer) {
            (Why::NoFile, _) | (_, None) if *why != Why::Broken => {
                match self.holder(connection).await? {
                    Some(holder) => {
                        format!("this replica has no file of {name}, but {holder} has one")
                    }
                    None => {
                        let text = format!(
                            "{}: no replica has a plugin file for {name}; its tables and checkpoint stay, put the file back \
                             and it goes on",
                            Code(812)
                        );
                        return Ok((Chosen::NoPlugin, Some(text)));
                    }
                }
            }
            (_, None) => "the plugin file cannot be used".to_owned(),
            (why, Some(offer)) => changed(why, offer, generation),
        };
        let recorded = format!(
            "{} (version {})",
            short(&generation.sha256),
            generation.plugin_version
        );
        let why_not = match self.kept(connection, generation).await? {
            Ok(plugin) => {
                let fits = declared.map(|declared| Difference::between(declared, &plugin.manifest));
                let unfit = fits
                    .filter(|fits| !fits.goes_on())
                    .map(|fits| fits.rebuild.join("; "));
                match unfit {
                    None => {
                        let text = format!(
                            "{}: {because}; the plugin that made the rows, {recorded}, goes on{}",
                            Code(810),
                            way_out(why, name)
                        );
                        return Ok((
                            Chosen::Plugin(plugin, Box::new(generation.clone())),
                            Some(text),
                        ));
                    }
                    Some(unfit) => {
                        format!("with the configuration of today it declares other things: {unfit}")
                    }
                }
            }
            Err(reason) => reason,
        };
        let text = format!(
            "{}: {because}; the plugin that made the rows, {recorded}, cannot run here: {why_not}{}",
            Code(802),
            way_out(why, name)
        );
        Ok(match why {
            Why::NoFile | Why::Broken => (Chosen::NoPlugin, Some(text)),
            _ => (Chosen::Stop(text.clone()), Some(text)),
        })
    }

    /// The recorded plugin, or why this replica cannot have it.
    async fn kept(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
    ) -> Result<Result<Arc<Plugin>, String>, schema::Error> {
        let loader = &self.known.loader;
        if let Some(pinned) = loader.pinned(&self.known.name)
            && !pinned.eq_ignore_ascii_case(&generation.sha256)
        {
            return Ok(Err(format!("the configuration pins {}", short(pinned))));
        }
        if let Some(ran) = self.ran.filter(|ran| ran.sha256 == generation.sha256) {
            return Ok(Ok(ran.clone()));
        }
        let name = self.connections.database();
        let asking = components::get(connection, self.checkpoints.control(), &generation.sha256);
        let Some(bytes) = bounded(name, CHANGE_TIMEOUT, asking).await? else {
            return Ok(Err("it is not in the component store".to_owned()));
        };
        let (loader, projection) = (loader.clone(), self.known.name.clone());
        let loading =
            tokio::task::spawn_blocking(move || loader.load_kept(&projection, &bytes)).await;
        Ok(match loading {
            Ok(Ok(plugin)) => Ok(Arc::new(plugin)),
            Ok(Err(error)) => Err(format!("{}: {error}", error.code())),
            Err(panic) => Err(format!("the host panicked while it loaded it: {panic}")),
        })
    }

    /// Another replica that has a file for this projection, or had one when it was last heard of.
    async fn holder(&self, connection: &mut PgConnection) -> Result<Option<String>, schema::Error> {
        let asking = folders::holder(
            connection,
            self.checkpoints.control(),
            &self.known.name,
            self.known.loader.folder(),
        );
        Ok(bounded(self.connections.database(), ANSWER_TIMEOUT, asking).await?)
    }

    /// Tells the log once, and everybody who asks for the status.
    async fn say(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        chosen: &Chosen,
        told: Option<String>,
        note: &mut Option<String>,
    ) -> Result<(), schema::Error> {
        let recorded = match chosen {
            Chosen::Plugin(_, next) => &next.note,
            _ => &generation.note,
        };
        if *recorded != told {
            self.checkpoints
                .note(connection, &generation.key, told.as_deref())
                .await?;
        }
        if *note != told {
            if let Some(text) = &told
                && !matches!(chosen, Chosen::Stop(_))
            {
                tracing::warn!(projection = self.known.name, "{text}");
            }
            *note = told;
        }
        Ok(())
    }

    fn actor(&self) -> String {
        format!("leader of term {}", self.checkpoints.fence().term)
    }

    async fn store_fits(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        row: &Checkpoint,
    ) -> Result<bool, Failure> {
        let name = self.connections.database();
        let accepted = row.accepted.as_deref() == Some("store");
        let Some((position, id)) = &row.last_event else {
            return Ok(true);
        };
        let looking = self.feed.look(*position);
        let (found, head) = looking
            .await
            .map_err(|error| Failure::transient(error.to_string()))?;
        if found.as_ref() == Some(id) {
            if accepted {
                let clearing = self.checkpoints.accepted(connection, &generation.key);
                bounded(name, ANSWER_TIMEOUT, clearing).await?;
            }
            return Ok(true);
        }
        if accepted {
            let accepting = self
                .checkpoints
                .accept_store(connection, &generation.key, head);
            let accepted = bounded(name, ANSWER_TIMEOUT, accepting).await?;
            tracing::warn!(
                projection = generation.key.projection,
                head = head.0,
                accepted,
                "goes on with another store"
            );
            return Ok(accepted);
        }
        let what = match found {
            Some(other) => format!("the event {other} instead of {id}"),
            None => format!("no event, but {id} was read there"),
        };
        let message = format!(
            "{}: at position {position} the event store holds {what}: it was restored, or lost events when it failed \
             over; rows of lost events stay. `projector-host resume {} --accept-store` goes on after position {}",
            Code(804),
            generation.key.projection,
            row.position.min(head),
        );
        self.refuse(connection, generation, row, STORE_CHANGED, &message)
            .await?;
        Ok(false)
    }

    async fn refuse(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        row: &Checkpoint,
        category: &str,
        message: &str,
    ) -> Result<(), Failure> {
        if row.failure.is_none() {
            let failure = Row {
                category,
                position: None,
                event_type: None,
                event_id: None,
                message,
            };
            let name = self.connections.database();
            let failing =
                self.checkpoints
                    .fail(connection, &generation.key, row.revision, &failure);
            bounded::<_, DatabaseError>(name, ANSWER_TIMEOUT, failing).await?;
            tracing::error!(
                projection = generation.key.projection,
                error = message,
                "the projection stopped"
            );
        }
        Ok(())
    }
}

fn filler(plugin: &Plugin) -> Filler<'_> {
    Filler {
        manifest: &plugin.manifest,
        sha256: &plugin.sha256,
        bytes: &plugin.bytes,
    }
}

/// What is said of a file that does not run.
fn changed(why: &Why, offer: &Offer, generation: &Generation) -> String {
    let plugin = &offer.plugin;
    let file = format!(
        "{} has the digest {} (version {}), but the rows were made by {}",
        plugin.file.display(),
        short(&plugin.sha256),
        plugin.manifest.version,
        short(&generation.sha256)
    );
    match why {
        Why::Older => format!("{file}, which replaced it: the file is an old one"),
        Why::Unfit(reasons) => format!(
            "{file}, and it cannot go on with them: {}",
            reasons.join("; ")
        ),
        _ => file,
    }
}

fn way_out(why: &Why, name: &str) -> String {
    match why {
        Why::Refused | Why::Older => {
            format!("; `projector-host resume {name} --accept-plugin` goes on with the file")
        }
        Why::Unfit(_) => {
            "; with `on_change = \"rebuild\"` it would begin anew with the file".to_owned()
        }
        Why::NoFile | Why::Broken => "; copy the right file here".to_owned(),
    }
}

async fn in_time<T>(
    database: &'static str,
    work: impl Future<Output = Result<T, schema::Error>>,
) -> Result<T, schema::Error> {
    let limit = CHANGE_TIMEOUT;
    tokio::time::timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(DatabaseError::TimedOut { database, limit }.into()))
}

fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}
