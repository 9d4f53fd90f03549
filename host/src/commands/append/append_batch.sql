-- Appends one batch of lines as one transaction. $1: a JSON array of the lines as they are.
SELECT appended, duplicates, first_position, last_position
  FROM {event_store}.append_batch($1::text::jsonb)
