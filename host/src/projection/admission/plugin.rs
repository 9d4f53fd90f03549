//! The plugin of a projection: what was chosen is done, and told.

use std::sync::Arc;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::database::error::Error as DatabaseError;
use crate::database::session::bounded;
use crate::error::Code;
use crate::plugin::Plugin;
use crate::plugin::manifest::{Difference, Manifest};
use crate::read_model::checkpoint::Checkpoint;
use crate::read_model::schema::{self, Filler, Generation};
use crate::read_model::{components, folders};
use crate::telemetry::escape::escaped;

use super::{ANSWER_TIMEOUT, Admission, CHANGE_TIMEOUT, Chosen};
use crate::projection::choice::{Case, Choice, Why, choose};
use crate::projection::roster::Offer;

impl Admission<'_> {
    /// The plugin that may run, or why there is none. What is said of it is written into `note` when it changes.
    pub(super) async fn plugin(
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
                (plugin.sha256.as_str(), &plugin.manifest, self.saw(offer))
            }),
            broken: self.known.broken,
            on_change: self.known.on_change,
            dev: self.known.dev,
            pinned: offer.is_some_and(|offer| self.pins(&offer.plugin)),
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
        // It holds for the file that was there then, or for none.
        if accepted {
            self.checkpoints
                .accepted(connection, &generation.key)
                .await?;
        }
        self.say(connection, generation, &chosen, told, note)
            .await?;
        Ok(chosen)
    }

    /// Whether this leader saw how the file was saved. What a standby saw may be older than the record.
    fn saw(&self, offer: &Offer) -> bool {
        offer.saved.is_some_and(|saved| saved >= self.since)
    }

    fn pins(&self, plugin: &Plugin) -> bool {
        let pinned = self.known.loader.pinned(&self.known.name);
        pinned.is_some_and(|pinned| pinned.eq_ignore_ascii_case(&plugin.sha256))
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
            code = %Code(821),
            from = short(&generation.sha256),
            sha256 = plugin.sha256,
            version = plugin.manifest.version,
            why = why.join("; "),
            after = generation.start.0,
            "THE PROJECTION BEGINS ANEW with another plugin; these rows are gone: {}",
            rows.join(", ")
        );
        self.known.progress.reached(generation.start);
        self.known.progress.letters_changed();
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
            (Why::Broken, _) => "the plugin file cannot be used".to_owned(),
            (_, None) => match self.holder(connection).await? {
                Some(holder) => format!("this replica has no file of {name}, but {holder} has one"),
                None => {
                    let text = format!(
                        "{}: no replica has a plugin file for {name}; its tables and checkpoint stay, put the file back \
                         and it goes on",
                        Code(822)
                    );
                    return Ok((Chosen::NoPlugin, Some(text)));
                }
            },
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
                            Code(820),
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
        escaped(&plugin.file.display().to_string()),
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
