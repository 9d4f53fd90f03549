-- Milliseconds, middle and 99th of a hundred: of appending, of its commit, and of both together.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY append_micros) / 1000,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY append_micros) / 1000,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY commit_micros) / 1000,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY commit_micros) / 1000,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY append_micros + commit_micros) / 1000,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY append_micros + commit_micros) / 1000
FROM live_commits
