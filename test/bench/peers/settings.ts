/** The settings of a peer. */
export interface PeerSettings {
  readonly databaseUrl: string;
  readonly databasePoolSize: number;
  readonly redisUrl: string;
}

/** Reads the settings from the environment. */
export function readSettings(): PeerSettings {
  return JSON.parse(process.env.PEER ?? '{}') as PeerSettings;
}
