/**
 * Whether a time exists: there is no 30 February, which JavaScript takes for a day of March.
 *
 * @param time - the beginning of a time in RFC 3339, down to the minute or the second, without a zone
 */
export function existsInCalendar(time: string): boolean {
  return new Date(Date.parse(`${time}Z`) || 0).toISOString().startsWith(time);
}
