/** What the floor is given in the environment, as JSON in `PEER`. */
export interface PeerSettings {
  readonly databaseUrl: string;
  readonly databasePoolSize: number;
  readonly redisUrl: string;
  /** The key of the epoch. */
  readonly epochKey: string;
}
