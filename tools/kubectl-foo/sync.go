// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/kubectl-foo/internal/cluster"
)

const syncHelp = `Let the controller sync Foos now, whatever they wait for.

The command gives the annotation GROUP/sync-requested a new value, which ends each back-off and each pause of the Foo
once, and waits until status.lastHandledSync answers it. That says that the sync was tried, not that it succeeded: the
command prints the condition Ready.

It requires permission to patch Foos. Exit codes: 0 if each request was answered, 2 after an error.`

// syncOptions are the flags of sync.
type syncOptions struct {
	planOptions

	timeout time.Duration
}

func newSyncCommand(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &syncOptions{planOptions: planOptions{config: config, IOStreams: streams}}
	command := &cobra.Command{
		Use:     "sync NAME...",
		Short:   "Let the controller sync Foos now",
		Long:    syncHelp,
		Example: `  kubectl foo sync -n shop web`,
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return o.sync(command.Context(), args) },
	}
	flags := command.Flags()
	config.AddFlags(flags)
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "How long to wait for an answer.")
	return command
}

func (o *syncOptions) sync(ctx context.Context, names []string) error {
	c, err := cluster.New(o.config, false)
	if err != nil {
		return err
	}
	targets, err := o.targets(ctx, c, kindsWith(o.image), names)
	if err != nil {
		return err
	}
	request := time.Now().UTC().Format(time.RFC3339Nano)
	for _, target := range targets {
		err = errors.Join(err, c.Annotate(ctx, target.kind.Resource, target.owner, target.kind.SyncRequested(), request, false))
	}
	if err != nil {
		return err
	}
	for _, target := range targets {
		err = errors.Join(err, o.await(ctx, c, target, request))
	}
	return err
}

// await prints what the controller says of an owner once it has answered a request.
func (o *syncOptions) await(ctx context.Context, c *cluster.Cluster, asked target, request string) error {
	name := asked.kind.Name + " " + cache.MetaObjectToName(asked.owner).String()
	err := wait.PollUntilContextTimeout(ctx, time.Second/4, o.timeout, true, func(ctx context.Context) (bool, error) {
		owners, err := c.ListOwners(ctx, asked.kind, asked.owner.GetName())
		switch {
		case err != nil:
			return false, err
		case len(owners) == 0:
			return false, c.NoOwner(asked.kind, asked.owner.GetName())
		case owners[0].GetLastHandledSync() != request:
			return false, nil
		}
		if ready := meta.FindStatusCondition(owners[0].GetConditions(), plan.ConditionReady); ready != nil {
			fmt.Fprintf(o.Out, "%s was synced: Ready is %s, %s: %s\n", name, ready.Status, printable.Quote(ready.Reason), printable.Quote(ready.Message))
		}
		return true, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%s: no controller has answered the request within %s: see 'kubectl foo why %s'", name, o.timeout, asked.owner.GetName())
	}
	return err
}
