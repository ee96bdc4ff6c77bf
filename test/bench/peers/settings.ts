/** What a peer works on. */
export interface PeerSettings {
  readonly databaseUrl: string;
  readonly databasePoolSize: number;
  readonly redisUrl: string;
}

/** Reads the settings that the benchmark puts into the environment. */
export function readSettings(): PeerSettings {
  return JSON.parse(process.env.PEER ?? '{}') as PeerSettings;
}
