//! Probes, metrics and the API. Any replica answers; nothing here changes anything yet.
//!
//! | path | 200 when |
//! |---|---|
//! | `/livez` | the process runs its tasks; never asks a database |
//! | `/readyz` | config and plugins are fine, both databases were reached and are migrated; standbys are ready |
//! | `/startupz` | all plugins are compiled |
//! | `/leaderz` | this replica leads; with a leader for each projection, at least one |
//! | `/leaderz/{projection}` | this replica leads this projection; 404 when it does not have it |
//! | `/lagz?events=…` | this replica leads and no projection is farther behind |
//! | `/metrics` | always |

mod probes;

use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::standing::Standing;
use crate::config::Config;
use crate::error::{Exit, Failure};
use crate::telemetry::metrics::Metrics;

/// Content type of the OpenMetrics text format.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A server that runs until shutdown.
#[derive(Debug)]
pub struct Served {
    /// Where it listens, with the real port.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    /// Waits until the last answer is sent, but not for ever.
    pub async fn ended(self) {
        let abort = self.task.abort_handle();
        if tokio::time::timeout(std::time::Duration::from_secs(2), self.task)
            .await
            .is_err()
        {
            abort.abort();
        }
    }
}

/// What every handler sees.
#[derive(Debug, Clone)]
struct View {
    standing: Standing,
    metrics: Metrics,
}

/// Starts to listen.
///
/// # Errors
/// When the address cannot be used.
pub async fn serve(
    config: &Config,
    metrics: Metrics,
    standing: Standing,
    shutdown: CancellationToken,
) -> Result<Served, Failure> {
    let listen = config.http.listen;
    let unusable = |error: std::io::Error| {
        Failure::new(
            Exit::Failed,
            format!(
                "cannot listen on {listen} ([http] listen): {error}; port 0 takes any free one"
            ),
        )
    };
    let listener = TcpListener::bind(listen).await.map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    let view = View { standing, metrics };
    let routes = Router::new()
        .route("/livez", get(probes::live))
        .route("/readyz", get(probes::ready))
        .route("/startupz", get(probes::startup))
        .route("/leaderz", get(probes::leader))
        .route("/leaderz/{projection}", get(probes::leader_of))
        .route("/lagz", get(probes::lag))
        .route("/metrics", get(metrics_page))
        .with_state(view);
    let task = tokio::spawn(async move {
        let serving =
            axum::serve(listener, routes).with_graceful_shutdown(shutdown.cancelled_owned());
        if let Err(error) = serving.await {
            tracing::error!(%error, "the HTTP server ended");
        }
    });
    Ok(Served { address, task })
}

async fn metrics_page(axum::extract::State(view): axum::extract::State<View>) -> impl IntoResponse {
    match view.metrics.encode() {
        Ok(page) => ([(CONTENT_TYPE, METRICS_TYPE)], page).into_response(),
        Err(_) => axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
