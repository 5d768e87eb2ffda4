// SPDX-License-Identifier: Apache-2.0

// The steps of a migration. Each can be told from the cluster alone, so that a migration can
// be interrupted anywhere, and continued by someone else.

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/hack/codegen/migrate/internal/shape"
)

// step is one step of a migration.
type step struct {
	name, about string
	// onlyShape is set if versions of the same shape don't need it.
	onlyShape bool
	// past is the stage from which on the step is done or needless. Zero means none.
	past shape.Stage
	// missing says what is still to be done, or is empty if the step is done.
	missing func(context.Context, *migration, *observed) (string, error)
	do      func(context.Context, *migration, *observed) error
}

// observed is what the steps look at.
type observed struct {
	stage   shape.Stage
	objects objects
	// clientsMoved is the user's word that no client uses the old version any more.
	clientsMoved bool
}

// steps are the steps, in their order.
var steps = []step{
	atStage("expand", "both versions are served, each with the fields of both", shape.Expanded, false),
	{
		name: "policy", about: "a policy gives each object that is written the fields of both versions", onlyShape: true, past: shape.Dropped,
		missing: func(ctx context.Context, m *migration, _ *observed) (string, error) {
			has, err := m.hasPolicy(ctx)
			return unless(has, "the policy "+m.SyncPolicyName()+" does not exist"), err
		},
		do: func(ctx context.Context, m *migration, _ *observed) error { return m.setPolicy(ctx) },
	},
	{
		name: "backfill", about: "every stored object has the fields of both versions", onlyShape: true, past: shape.Dropped,
		missing: func(_ context.Context, _ *migration, o *observed) (string, error) {
			lacking := len(o.objects.incomplete)
			return unless(lacking == 0, fmt.Sprintf("%d of %d objects lack fields: %s", lacking, o.objects.all, some(o.objects.incomplete))), nil
		},
		do: func(ctx context.Context, m *migration, _ *observed) error {
			err := m.rewrite(ctx)
			if now, scanned := m.scan(ctx, m.Old, m.New); err == nil && len(now.incomplete) > 0 {
				err = errors.Join(scanned, fmt.Errorf("%d objects have a value that can't be converted: %s. Correct them, and run this step again", len(now.incomplete), some(now.incomplete)))
			}
			return err
		},
	},
	atStage("strict", "objects must have the fields of both versions, so that a missing policy is noticed", shape.Strict, true),
	{
		name: "clients", about: "clients, manifests and the controller's release use the new version", past: shape.Unserved,
		missing: func(_ context.Context, m *migration, o *observed) (string, error) {
			return unless(o.clientsMoved, fmt.Sprintf("%d of %d objects were written through %s%s", o.objects.entries, o.objects.all, m.Old, counted(o.objects.writers))), nil
		},
		do: func(context.Context, *migration, *observed) error {
			return errors.New("this is the clients' time: move all clients and manifests to the new version. Then run next -clients-have-moved")
		},
	},
	{
		name: "owners", about: "no owner reference names the old version", past: shape.Dropped,
		missing: func(ctx context.Context, m *migration, _ *observed) (string, error) {
			found, err := m.owned(ctx, m.Old)
			names := make([]string, len(found))
			for i := range found {
				names[i] = found[i].String()
			}
			return unless(len(found) == 0, fmt.Sprintf("%d objects name %s: %s", len(found), m.Old, some(names))), err
		},
		do: func(ctx context.Context, m *migration, _ *observed) error { return m.moveReferences(ctx, m.Old, m.New) },
	},
	atStage("unserve", "the old version is not served any more", shape.Unserved, false),
	atStage("store", "what is written is stored in the new version", shape.Stored, false),
	{
		name: "managedfields", about: "all objects are stored in the new version, and their managedFields name it", past: shape.Dropped,
		missing: func(ctx context.Context, m *migration, o *observed) (string, error) {
			proved, err := m.migrated(ctx)
			return unless(proved && o.objects.entries == 0, fmt.Sprintf("%d of %d objects have managedFields of %s; a StorageVersionMigration of this CustomResourceDefinition has succeeded: %t", o.objects.entries, o.objects.all, m.Old, proved)), err
		},
		do: func(ctx context.Context, m *migration, _ *observed) error {
			if err := m.moveManagedFields(ctx, false); err != nil {
				return err
			}
			return m.rewrite(ctx)
		},
	},
	atStage("drop", "the old version is gone. This can't be taken back", shape.Dropped, false),
	{
		name: "unpolicy", about: "the policy is gone", onlyShape: true,
		missing: func(ctx context.Context, m *migration, _ *observed) (string, error) {
			has, err := m.hasPolicy(ctx)
			return unless(!has, "the policy "+m.SyncPolicyName()+" exists"), err
		},
		do: func(ctx context.Context, m *migration, _ *observed) error { return m.deletePolicy(ctx) },
	},
	atStage("contract", "the old version's fields are gone", shape.Contracted, true),
	{
		name: "prune", about: "the old version's fields are gone from what is stored", onlyShape: true,
		missing: func(ctx context.Context, m *migration, _ *observed) (string, error) {
			proved, err := m.migrated(ctx)
			return unless(proved, "no StorageVersionMigration of this CustomResourceDefinition has succeeded"), err
		},
		do: func(ctx context.Context, m *migration, _ *observed) error { return m.rewrite(ctx) },
	},
}

// atStage returns a step that changes the CustomResourceDefinition alone.
func atStage(name, about string, stage shape.Stage, onlyShape bool) step {
	return step{
		name: name, about: about, onlyShape: onlyShape, past: stage,
		missing: func(_ context.Context, _ *migration, o *observed) (string, error) {
			return "the CustomResourceDefinition is " + o.stage.String(), nil
		},
		do: func(ctx context.Context, m *migration, _ *observed) error { return m.setCRD(ctx, stage, nil) },
	}
}

func unless(done bool, missing string) string {
	if done {
		return ""
	}
	return missing
}

// some returns the first of many names.
func some(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

func counted(writers map[string]int) string {
	text, separator := "", ", by "
	for _, name := range slices.Sorted(maps.Keys(writers)) {
		text += fmt.Sprintf("%s%s (%d)", separator, name, writers[name])
		separator = ", "
	}
	return text
}

// observe reads the cluster.
func (m *migration) observe(ctx context.Context) (*observed, error) {
	crd, err := m.crds.Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	o := &observed{}
	if o.stage, err = m.StageOf(crd); err != nil {
		return nil, err
	}
	version := m.New
	if o.stage == shape.Original {
		version = m.Old
	}
	o.objects, err = m.scan(ctx, version, m.Old)
	return o, err
}

// walk visits the steps in their order until visit returns false.
func (m *migration) walk(ctx context.Context, o *observed, visit func(number int, s step, missing string) (bool, error)) error {
	for i, s := range steps {
		if s.onlyShape && len(m.Changes) == 0 {
			continue
		}
		missing, err := "", error(nil)
		if s.past == 0 || o.stage < s.past {
			missing, err = s.missing(ctx, m, o)
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s.name, err)
		}
		if more, err := visit(i+1, s, missing); err != nil || !more {
			return err
		}
	}
	return nil
}

// status prints the steps, up to the next one with what it needs.
func (m *migration) status(ctx context.Context) error {
	o, err := m.observe(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(m.out, "%s, %s to %s: %d objects\n", m.Name, m.Old, m.New, o.objects.all)
	next := false
	err = m.walk(ctx, o, func(number int, s step, missing string) (bool, error) {
		switch {
		case next:
			fmt.Fprintf(m.out, "     %2d %-13s %s\n", number, s.name, s.about)
		case missing == "":
			fmt.Fprintf(m.out, "done %2d %-13s %s\n", number, s.name, s.about)
		default:
			next = true
			fmt.Fprintf(m.out, "next %2d %-13s %s\n        %s\n", number, s.name, s.about, missing)
		}
		return true, nil
	})
	switch {
	case err != nil:
		return err
	case o.stage > shape.Original && o.stage < shape.Dropped:
		fmt.Fprintln(m.out, "All of this can still be taken back: migrate back")
	case o.stage >= shape.Dropped:
		fmt.Fprintf(m.out, "%s is gone. This can't be taken back.\n", m.Old)
	}
	return nil
}

// next does the next step, or all steps up to and including one.
func (m *migration) next(ctx context.Context, through string, clientsMoved bool) error {
	end := len(steps) // the index of the last step to do
	if through != "" {
		if end = slices.IndexFunc(steps, func(s step) bool { return s.name == through }); end < 0 {
			names := make([]string, len(steps))
			for i := range steps {
				names[i] = steps[i].name
			}
			return fmt.Errorf("-through=%s: there is no such step: use %s", through, strings.Join(names, ", "))
		}
	}
	for {
		o, err := m.observe(ctx)
		if err != nil {
			return err
		}
		o.clientsMoved = clientsMoved
		did := false
		err = m.walk(ctx, o, func(number int, s step, missing string) (bool, error) {
			switch {
			case number > end+1:
				return false, nil
			case missing == "":
				return true, nil
			}
			did = true
			fmt.Fprintf(m.out, "step %d, %s: %s\n  %s\n", number, s.name, s.about, missing)
			return false, s.do(ctx, m, o)
		})
		switch {
		case err != nil:
			return err
		case !did && through == "":
			fmt.Fprintln(m.out, "Nothing is left to do.")
			return nil
		case !did || through == "":
			return nil
		}
	}
}

// back takes everything back, so that only the old version is left.
func (m *migration) back(ctx context.Context, clientsMoved bool) error {
	o, err := m.observe(ctx)
	switch {
	case err != nil:
		return err
	case o.stage >= shape.Dropped:
		return fmt.Errorf("%s is gone: this can't be taken back", m.Old)
	case !clientsMoved && o.stage >= shape.Unserved: // clients can't move to what is not served
		err = m.setCRD(ctx, shape.Strict, nil)
		fallthrough
	case !clientsMoved:
		return errors.Join(err, errors.New("move all clients, manifests and the controller's release back to the old version first. Then run back -clients-have-moved"))
	}
	if err := m.setCRD(ctx, shape.Expanded, func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Served = crd.Spec.Versions[i].Name == m.Old
		}
	}); err != nil {
		return err
	}
	// The policy goes first: it would write fields that the schema no longer has. What is stored
	// of the new fields goes last: it would be there again at the next attempt.
	for _, do := range []func() error{
		func() error { return m.moveReferences(ctx, m.New, m.Old) },
		func() error { return m.moveManagedFields(ctx, true) },
		func() error { return m.rewrite(ctx) },
		func() error { return m.deletePolicy(ctx) },
		func() error { return m.setCRD(ctx, shape.Original, nil) },
		func() error { return m.rewrite(ctx) },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}
