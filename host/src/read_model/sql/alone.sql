-- No row changes with the checkpoint, so its commit waits for no disk: what a crash of the server takes is scanned again.
  AND set_config('synchronous_commit', 'off', true) = 'off'
