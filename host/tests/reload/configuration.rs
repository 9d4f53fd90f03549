//! A changed configuration, by SIGHUP or by itself.

use projector_host::plugin::file::sha256;
use rustix::process::Signal;

use crate::support::{Place, count, shipped, small};

#[test]
fn sighup_takes_up_files_and_the_configuration_as_a_whole_or_not_at_all() {
    let place = Place::new("on_change = \"refuse\"");
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    // Nobody watches: a saved file waits for a word.
    let second = small("2.0");
    place.save("hostile.wasm", &second);
    place
        .site
        .configure(|text| text.replace("on_change = \"refuse\"", "on_change = \"continue\""));
    place.applies_an_event("hostile");
    assert_eq!(count(&leader, "plugin loaded"), 1);
    leader.signal(Signal::HUP);
    place.records("hostile", &second);
    leader.logs("plugins.on_change");
    // A file with a fault changes nothing, and says so once a try.
    place
        .site
        .configure(|text| text.replace("[plugins]\n", "[plugins]\nwhatever = 1\n"));
    leader.signal(Signal::HUP);
    leader.logs("the changed configuration is refused");
    assert!(leader.log().contains("whatever"), "{}", leader.log());
    assert_eq!(
        leader.metric("projector_config_reload_failures_total"),
        Some(1.0)
    );
    // What needs a restart is named and not applied.
    place.site.configure(|text| {
        text.replace("whatever = 1\n", "")
            .replace("retry_interval = \"100ms\"", "retry_interval = \"150ms\"")
            + "[plugins.limits]\nfuel_max = 1\n"
    });
    leader.signal(Signal::HUP);
    leader.logs("leader.retry_interval");
    // The plugin cannot even say its name with so little: the old limits stay.
    place.site.eventually("the limits are refused", || {
        (leader.metric("projector_config_reload_failures_total") == Some(2.0)).then_some(())
    });
    place.applies_an_event("hostile");
    place
        .site
        .configure(|text| text.replace("fuel_max = 1\n", "fuel_max = 100000000\n"));
    leader.signal(Signal::HUP);
    leader.logs("plugins.limits.fuel_max");
    place.applies_an_event("hostile");
    assert_eq!(
        place.site.status_of("hostile")["plugin"]["sha256"],
        sha256(&second)
    );
    leader.stop();
}

#[test]
fn a_watched_configuration_is_taken_up_by_itself() {
    let place = Place::new("watch = true\non_change = \"refuse\"");
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    let second = small("2.0");
    place.save("hostile.wasm", &second);
    leader.logs("PH0820");
    place
        .site
        .configure(|text| text.replace("on_change = \"refuse\"", "on_change = \"continue\""));
    place.records("hostile", &second);
    place.applies_an_event("hostile");
    leader.stop();
}

#[test]
fn a_stray_file_with_a_taken_name_does_not_keep_a_changed_configuration_out() {
    let place = Place::new("watch = true\non_change = \"refuse\"");
    place.save("hostile.wasm", &small("1.0"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("hostile");
    place.save("a-stray.wasm", &small("9.0"));
    leader.logs("PH0512");
    place
        .site
        .configure(|text| text.replace("on_change = \"refuse\"", "on_change = \"continue\""));
    leader.logs("the changed configuration is applied");
    let second = small("2.0");
    place.save("hostile.wasm", &second);
    place.records("hostile", &second);
    place.applies_an_event("hostile");
    // Once more, with a file that came in the meantime.
    place.save("b-stray.wasm", &small("8.0"));
    place
        .site
        .configure(|text| text.replace("on_change = \"continue\"", "on_change = \"refuse\""));
    place.site.eventually("it is applied again", || {
        (count(&leader, "the changed configuration is applied") == 2).then_some(())
    });
    place.applies_an_event("hostile");
    let ids = "select string_agg(id::text, ' ' order by id) from read_model.events";
    assert_eq!(place.site.model(ids), "1.0 2.0");
    leader.stop();
}

#[test]
fn a_plugin_configuration_that_the_rows_do_not_fit_is_refused_as_a_whole() {
    let place = Place::new("watch = true\non_change = \"continue\"");
    place.save("order.wasm", &shipped("order"));
    let leader = place.site.leader_of_one("a");
    place.applies_an_event("order");
    let section =
        "[[projection]]\nname = \"order\"\non_error = \"stop\"\nconfig = { change_logs = false }\n";
    place.site.configure(|text| text + section);
    leader.logs("the changed configuration is refused");
    assert!(leader.log().contains("PH0802"), "{}", leader.log());
    place.applies_an_event("order");
    place.state("order", "live");
    // Without the change nothing is in the way.
    place
        .site
        .configure(|text| text.replace("config = { change_logs = false }\n", ""));
    leader.logs("the changed configuration is applied");
    place.applies_an_event("order");
    place.state("order", "live");
    leader.stop();
}
