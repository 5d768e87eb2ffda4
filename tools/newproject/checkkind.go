// SPDX-License-Identifier: Apache-2.0

// The rules for an added kind.

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// check returns an error if a project can't get a kind beside those that it has.
func (k addedKind) check(project request) error {
	n := k.names(deriveNames(project))
	if err := errors.Join(checkKind(n), checkPlural(n), checkShort(n.Short)); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "-kind=", "-add-kind="))
	}
	if _, err := childOf(k.Child); err != nil {
		return err
	}
	for _, other := range append([]addedKind{{Kind: project.Kind, Plural: project.Plural, Short: project.Short}}, project.Kinds...) {
		o := other.names(deriveNames(project))
		switch {
		case strings.EqualFold(o.Kind, k.Kind):
			return fmt.Errorf("-add-kind=%s: the project has this kind already", k.Kind)
		case o.Plural == n.Plural:
			return fmt.Errorf("-add-kind=%s: its plural, %s, is that of %s: choose another with -plural", k.Kind, n.Plural, o.Kind)
		case k.Short != "" && k.Short == o.Short:
			return fmt.Errorf("-short=%s: is that of %s: choose another", k.Short, o.Kind)
		case k.Child == other.Child:
			return fmt.Errorf("-child=%s: %s own this already, and the controllers of both would need the same informer: choose another", k.Child, o.Kinds)
		}
	}
	return nil
}

// checkKind returns an error if the kind can't be added to the project in the folder.
func (u *updater) checkKind(ctx context.Context) error {
	if err := u.kind.check(u.from.request); err != nil {
		return err
	}
	n := u.kind.names(deriveNames(u.from.request))
	first := speller{names: deriveNames(u.from.request)}
	for _, path := range []string{"internal/" + n.singular(), first.text("test/footest/") + n.singular() + ".go"} {
		if found, err := git(ctx, u.dir, "ls-files", path); err != nil || found != "" {
			return errors.Join(err, fmt.Errorf("-add-kind=%s: needs %s, which the project has already: choose another kind, or add a word", u.kind.Kind, path))
		}
	}
	return nil
}
