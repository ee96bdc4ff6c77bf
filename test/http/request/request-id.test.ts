import assert from 'node:assert/strict';
import { chooseRequestId } from '../../../src/http/request/prepare-request.js';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe('the id of a request', () => {
  for (const [what, id] of [
    ['one character', 'x'],
    ['all kinds of characters that an id may have', 'Az09._-'],
    ['64 characters', 'abc.12-3'.repeat(8)],
    ['11 letters in a row', 'abcdefghijk'],
    ['runs of 11 characters', 'abcdefghijk-12345678901_ABCDEFGHIJK'],
    ['a UUID', '0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7b'],
    ['a UUID in capitals', '0190A5B2-7C3D-7E4F-8A1B-2C3D4E5F6A7B'],
    ['32 hexadecimal digits', '4bf92f3577b34da6a3ce929d0e0e4736'],
    ['32 hexadecimal digits in capitals', '4BF92F3577B34DA6A3CE929D0E0E4736'],
    ['a public prefix of a key alone', 'svc_12345678'],
  ] as const) {
    it(`is the one that was offered: ${what}`, () => {
      assert.equal(chooseRequestId(id), id);
    });
  }

  for (const [what, offered] of [
    ['nothing', undefined],
    ['the field twice', ['a', 'b']],
    ['the field once in a list', ['a']],
    ['an empty one', ''],
    ['65 characters', `${'abc.12-3'.repeat(8)}x`],
    ['a colon', 'a:b'],
    ['a slash', 'a/b'],
    ['an equals sign', 'a=b'],
    ['a plus sign', 'a+b'],
    ['a blank', 'a b'],
    ['a blank in front', ' a'],
    ['a blank behind', 'a '],
    ['a line feed behind', 'a\n'],
    ['a quote', 'a"b'],
    ['a letter outside ASCII', 'é'],
    ['12 letters and digits in a row', 'abcdefghijk1'],
    ['12 capitals in a row', 'ABCDEFGHIJKL'],
    ['12 letters and digits behind a dash', 'x-abcdefghijk1'],
    ['12 letters and digits before a dash', 'abcdefghijk1-x'],
    ['a short secret behind its prefix', 'svc_12345678_abc'],
    ['a short secret behind its prefix in capitals', 'x-SVC_ABCDEFGH_abc'],
    ['a UUID with a letter too many in front', 'x0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7b'],
    ['a UUID with a letter too many behind', '0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7bx'],
    ['a UUID with a group too few', '0190a5b2-7c3d-7e4f-2c3d4e5f6a7b'],
    ['a UUID whose last group is not hexadecimal', '0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7g'],
    ['31 hexadecimal digits', '4bf92f3577b34da6a3ce929d0e0e473'],
    ['33 hexadecimal digits', '4bf92f3577b34da6a3ce929d0e0e47361'],
    ['32 digits behind a letter that is not hexadecimal', 'x4bf92f3577b34da6a3ce929d0e0e4736'],
    ['32 letters that are not all hexadecimal', '4bf92f3577b34da6a3ce929d0e0e473g'],
  ] as const) {
    it(`is a new UUID: ${what}`, () => {
      const given = typeof offered === 'object' ? [...offered] : offered;
      const id = chooseRequestId(given);
      assert.match(id, UUID);
      assert.notEqual(id, chooseRequestId(given));
    });
  }
});
