-- The history that a torture run is judged by: written by triggers inside the transactions of the program under test,
-- so that it cannot tell anything else than what was committed. The program does not know of it.

create schema history;

create table history.applied (
    seq           bigint generated always as identity primary key,
    projection    text not null,
    generation    integer not null,
    from_position bigint not null,
    to_position   bigint not null,
    term          bigint not null,
    term_id       uuid not null,
    replica       text not null,
    txid          xid8 not null default pg_current_xact_id(),
    at            timestamptz not null default clock_timestamp()
);
comment on table history.applied is 'One row for each move of a checkpoint, in the transaction of the batch.';

create table history.claims (
    seq     bigint generated always as identity primary key,
    term    bigint not null,
    term_id uuid not null,
    node    text not null,
    replica text not null,
    at      timestamptz not null default clock_timestamp()
);
comment on table history.claims is 'One row for each claimed term, in the transaction of the claim.';

create table history.releases (
    term bigint not null,
    at   timestamptz not null
);
comment on table history.releases is 'Terms that were given back in order.';

-- Who writes: the node in projector/<group>/<node>/<purpose>.
create function history.replica() returns text language sql as $$
    select coalesce(nullif(split_part(current_setting('application_name'), '/', 3), ''), 'a stranger')
$$;

create function history.write_applied() returns trigger language plpgsql as $$ begin
    insert into history.applied (projection, generation, from_position, to_position, term, term_id, replica)
    values (new.projection, new.generation, old.position, new.position, new.term, new.term_id, history.replica());
    return null;
end $$;
create trigger history_applied after update on projector.checkpoints for each row
    when (new.position <> old.position) execute function history.write_applied();

create function history.write_claim() returns trigger language plpgsql as $$ begin
    insert into history.claims (term, term_id, node, replica) values (new.term, new.term_id, new.node, history.replica());
    return null;
end $$;
create trigger history_first_claim after insert on projector.leadership for each row
    execute function history.write_claim();
create trigger history_claim after update on projector.leadership for each row
    when (new.term_id <> old.term_id) execute function history.write_claim();

create function history.write_release() returns trigger language plpgsql as $$ begin
    insert into history.releases (term, at) values (new.term, new.released_at);
    return null;
end $$;
create trigger history_release after update on projector.leadership for each row
    when (new.released_at is not null and old.released_at is null) execute function history.write_release();

create function history.refuse() returns trigger language plpgsql as $$ begin
    raise exception 'history is not changed';
end $$;
create trigger append_only before update or delete or truncate on history.applied
    for each statement execute function history.refuse();
create trigger append_only before update or delete or truncate on history.claims
    for each statement execute function history.refuse();
