-- Waits until another session than $1 holds the leader lock, and says when $1 was seen without it and when the other
-- was first seen with it, in microseconds since 1970. Looks about a thousand times a second.
create function public.watch_lock(old_pid integer) returns text language plpgsql as $$
declare
    holder integer;
    free_at timestamptz;
    begun constant timestamptz := clock_timestamp();
begin
    loop
        select pid into holder from pg_locks
         where locktype = 'advisory' and granted and objsubid = 1
           and classid = x'5049434f'::bigint::oid and objid = x'43515253'::bigint::oid
           and database = (select oid from pg_database where datname = current_database());
        if free_at is null and holder is distinct from old_pid then
            free_at := clock_timestamp();
        end if;
        if holder <> old_pid then
            return format('%s %s', (extract(epoch from free_at) * 1000000)::bigint,
                          (extract(epoch from clock_timestamp()) * 1000000)::bigint);
        end if;
        if clock_timestamp() > begun + interval '30 seconds' then
            return '';
        end if;
        perform pg_sleep(0.0005);
    end loop;
end $$;
