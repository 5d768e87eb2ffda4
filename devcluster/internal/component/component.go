// SPDX-License-Identifier: Apache-2.0

// Package component runs the programs in devcluster, each like its own main function.
package component

import (
	"fmt"
	"os"
	_ "time/tzdata" // time zones for CronJobs, on machines without a database

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // for kubeconfigs of other clusters
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric kubernetes_build_info
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/kwok/pkg/config"
	kwokcmd "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/cel"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// Run runs the program with a name, if there is one, and returns its exit code, unless the
// program exits itself.
func Run(name string, args []string) (code int, found bool) {
	program, found := map[string]func() int{
		"etcd":                    etcd,
		"kube-apiserver":          kubernetes(apiserver.NewAPIServerCommand),
		"kube-controller-manager": kubernetes(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          kubernetes(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubectl":                 kubectl,
		"kwok":                    kwok,
	}[name]
	if !found {
		return 0, false
	}
	// The programs read their arguments from os.Args, and derive their user agent from
	// it.
	os.Args = append([]string{name}, args...)
	return program(), true
}

func etcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func kubernetes(newCommand func() *cobra.Command) func() int {
	return func() int { return cli.Run(newCommand()) }
}

// resetGlobalFlags replaces the global flag set, because the packages of the other
// programs have registered flags in it: kubectl would accept them as its own, and KWOK
// would panic because of a second flag "version".
func resetGlobalFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
}

func kubectl() int {
	resetGlobalFlags()
	// The command is built before cobra parses the flags, and building it can log:
	// plugins, .kuberc.
	_, _ = logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints the error and exits with kubectl's code for it
	}
	return 0
}

func kwok() int {
	resetGlobalFlags()
	// KWOK reads its configuration before it parses its command line, from a first pass
	// over the flags.
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, logger := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err == nil {
		// KWOK's controllers compile their first expressions at the same time, and easycel keeps the types it
		// has seen in maps without a lock, which ends the process now and then: show it all types before.
		_, err = cel.NewEnvironment(cel.EnvironmentConfig{Types: cel.DefaultTypes, Conversions: cel.DefaultConversions, Funcs: cel.DefaultFuncs, Methods: cel.FuncsToMethods(cel.DefaultFuncs)})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		return 1
	}
	command := kwokcmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Execute exit", "err", err)
		return 1
	}
	return 0
}
