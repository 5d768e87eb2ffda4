// SPDX-License-Identifier: Apache-2.0

// Quoting for a shell.

package command

import "strings"

// plain are the characters that have no special meaning in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"

// quote quotes s for a shell if that is needed.
func quote(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
