-- What changes of plugins need: where a generation begins, which plugins filled it before, and who has which file.

ALTER TABLE {control}.generations
    ADD COLUMN start_position bigint NOT NULL DEFAULT 0,
    ADD COLUMN former         text[] NOT NULL DEFAULT '{}',
    ADD COLUMN note           text;
COMMENT ON COLUMN {control}.generations.start_position IS 'The position after which it began, and begins again when it is emptied.';
COMMENT ON COLUMN {control}.generations.former IS 'Digests of the plugins that filled it before, the newest last: a replica with such a file has an old one.';
COMMENT ON COLUMN {control}.generations.note IS 'Why another plugin runs than the one in the leader''s folder, or none at all.';

CREATE TABLE {control}.folders (
    host        text NOT NULL,
    dir         text NOT NULL,
    node        text NOT NULL,
    projections jsonb NOT NULL,
    refused     jsonb NOT NULL,
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (host, dir, node)
);
COMMENT ON TABLE {control}.folders IS 'What every replica that runs, or that ended without a word, has in its plugin folder: which projections it has files for.';
COMMENT ON COLUMN {control}.folders.projections IS 'Projections with the digest of the file, null when the file cannot be used.';
COMMENT ON COLUMN {control}.folders.refused IS 'Files that are not used, and projections that cannot begin, each with the reason.';
