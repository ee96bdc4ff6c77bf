/** Requests by how they ended. */
export interface UsageCounts {
  /** Answered. */
  readonly served: number;
  /** Refused by a limit of the plan. */
  readonly refused: number;
  /** Failed by a fault of the service. */
  readonly failed: number;
}
