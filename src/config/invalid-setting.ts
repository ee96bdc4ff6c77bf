/**
 * The text of a setting is wrong. The message follows the setting's name, and repeats the text only if it is no secret.
 */
export class InvalidSetting extends Error {
  override readonly name = 'InvalidSetting';
}
