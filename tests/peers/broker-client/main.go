// A platform whose client of brokers is the one of Service Catalog, which we did not write. It leads one instance of a service
// through its life, and says each step on a line. What the specification has and the broker has not is a line, too.
//
// broker-client URL USER PASSWORD SERVICE PLAN PARAMETERS
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	osb "github.com/drycc-addons/go-open-service-broker-client/v2"
)

const (
	instance = "0c1b2a3d-0000-4000-8000-000000000007"
	binding  = "b-7"
)

func must(what string, err error) {
	if err != nil {
		fmt.Printf("failed: %s: %v\n", what, err)
		os.Exit(1)
	}
}

func refused(what string, err error, is func(error) bool) {
	if err == nil || !is(err) {
		must(what, fmt.Errorf("it should have been refused, and there is: %v", err))
	}
	fmt.Printf("refused: %s\n", what)
}

// Says which optional part is not there, if the broker answers so.
func absent(what string, err error) {
	answer, ok := osb.IsHTTPError(err)
	if !ok || answer.StatusCode != 422 || answer.ErrorMessage == nil || *answer.ErrorMessage != "NotSupported" {
		must(what, fmt.Errorf("it should not be supported, and there is: %v", err))
	}
	fmt.Printf("not there: %s: %s\n", what, *answer.Description)
}

func main() {
	url, user, password, name, planName := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	var parameters map[string]interface{}
	must("parameters", json.Unmarshal([]byte(os.Args[6]), &parameters))

	for _, wrong := range []string{"", password + "x"} {
		config := osb.DefaultClientConfiguration()
		config.URL = url
		config.AuthConfig = &osb.AuthConfig{BasicAuthConfig: &osb.BasicAuthConfig{Username: user, Password: wrong}}
		stranger, err := osb.NewClient(config)
		must("client", err)
		_, err = stranger.GetCatalog()
		refused("a wrong password", err, func(err error) bool {
			answer, ok := osb.IsHTTPError(err)
			return ok && answer.StatusCode == 401
		})
	}
	config := osb.DefaultClientConfiguration()
	config.URL = url
	config.AuthConfig = &osb.AuthConfig{BasicAuthConfig: &osb.BasicAuthConfig{Username: user, Password: password}}
	config.EnableAlphaFeatures = true
	client, err := osb.NewClient(config)
	must("client", err)

	catalog, err := client.GetCatalog()
	must("catalog", err)
	var service *osb.Service
	var plan *osb.Plan
	for i := range catalog.Services {
		if catalog.Services[i].Name == name {
			service = &catalog.Services[i]
		}
	}
	if service == nil {
		must("catalog", fmt.Errorf("it has no service %s", name))
	}
	for i := range service.Plans {
		if service.Plans[i].Name == planName {
			plan = &service.Plans[i]
		}
	}
	if plan == nil {
		must("catalog", fmt.Errorf("the service has no plan %s", planName))
	}
	if plan.Schemas == nil || plan.Schemas.ServiceInstance == nil || plan.Schemas.ServiceInstance.Create == nil {
		must("catalog", fmt.Errorf("the plan has no schema"))
	}
	fmt.Printf("catalog: %s with plan %s\n", service.Name, plan.Name)
	if service.DashboardClient == nil {
		fmt.Println("not there: a dashboard")
	}
	if plan.MaintenanceInfo == nil {
		fmt.Println("not there: maintenance_info")
	}
	if service.PlanUpdatable == nil || !*service.PlanUpdatable {
		fmt.Println("not there: another plan of an instance")
	}

	identity := &osb.OriginatingIdentity{Platform: "kubernetes", Value: `{"username":"joe"}`}
	provision := osb.ProvisionRequest{
		InstanceID: instance, ServiceID: service.ID, PlanID: plan.ID, OrganizationGUID: "org", SpaceGUID: "space",
		Parameters: parameters, Context: map[string]interface{}{"platform": "kubernetes", "namespace": "shop"},
		OriginatingIdentity: identity,
	}
	_, err = client.ProvisionInstance(&provision)
	refused("an instance that should be there at once", err, osb.IsAsyncRequiredError)
	provision.AcceptsIncomplete = true
	made, err := client.ProvisionInstance(&provision)
	must("provision", err)
	if !made.Async || made.OperationKey == nil {
		must("provision", fmt.Errorf("it should take time: %+v", made))
	}
	await := func(operation *osb.OperationKey) (*osb.LastOperationResponse, error) {
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			last, err := client.PollLastOperation(&osb.LastOperationRequest{
				InstanceID: instance, ServiceID: &service.ID, PlanID: &plan.ID, OperationKey: operation,
				OriginatingIdentity: identity,
			})
			if err != nil || last.State != osb.StateInProgress || time.Now().After(end) {
				return last, err
			}
		}
	}
	last, err := await(made.OperationKey)
	must("poll", err)
	if last.State != osb.StateSucceeded {
		must("poll", fmt.Errorf("the instance is %s: %s", last.State, *last.Description))
	}
	fmt.Println("provisioned")
	again, err := client.ProvisionInstance(&provision)
	must("provision again", err)
	if again.Async {
		must("provision again", fmt.Errorf("it is there already"))
	}
	provision.Parameters = nil
	_, err = client.ProvisionInstance(&provision)
	refused("other parameters", err, osb.IsConflictError)
	shown, err := client.GetInstance(&osb.GetInstanceRequest{InstanceID: instance})
	must("get instance", err)
	if shown.ServiceID != service.ID || shown.PlanID != plan.ID {
		must("get instance", fmt.Errorf("it is another one: %+v", shown))
	}
	fmt.Println("shown")
	if shown.Parameters == nil {
		fmt.Println("not there: parameters of what is shown")
	}
	_, err = client.UpdateInstance(&osb.UpdateInstanceRequest{
		InstanceID: instance, ServiceID: service.ID, PlanID: &plan.ID, AcceptsIncomplete: true, OriginatingIdentity: identity,
	})
	absent("updates of instances", err)

	bind := osb.BindRequest{
		BindingID: binding, InstanceID: instance, ServiceID: service.ID, PlanID: plan.ID, AcceptsIncomplete: true,
		OriginatingIdentity: identity,
	}
	bound, err := client.Bind(&bind)
	must("bind", err)
	if bound.Async {
		must("bind", fmt.Errorf("it is there at once"))
	}
	fmt.Println("not there: bindings that take time")
	credentials, err := json.Marshal(bound.Credentials)
	must("bind", err)
	fmt.Printf("bound: %s\n", credentials)
	bind.Parameters = map[string]interface{}{"role": "reader"}
	_, err = client.Bind(&bind)
	refused("parameters of a binding", err, func(err error) bool {
		answer, ok := osb.IsHTTPError(err)
		return ok && answer.StatusCode == 400
	})
	read, err := client.GetBinding(&osb.GetBindingRequest{InstanceID: instance, BindingID: binding})
	must("get binding", err)
	if same, _ := json.Marshal(read.Credentials); string(same) != string(credentials) {
		must("get binding", fmt.Errorf("it has other credentials"))
	}
	unbind := osb.UnbindRequest{
		InstanceID: instance, BindingID: binding, ServiceID: service.ID, PlanID: plan.ID, AcceptsIncomplete: true,
		OriginatingIdentity: identity,
	}
	_, err = client.Unbind(&unbind)
	must("unbind", err)
	fmt.Println("unbound")
	// This client takes for done what is gone.
	_, err = client.Unbind(&unbind)
	must("unbind again", err)

	deprovision := osb.DeprovisionRequest{
		InstanceID: instance, ServiceID: service.ID, PlanID: plan.ID, OriginatingIdentity: identity,
	}
	_, err = client.DeprovisionInstance(&deprovision)
	refused("a removal at once", err, osb.IsAsyncRequiredError)
	deprovision.AcceptsIncomplete = true
	removed, err := client.DeprovisionInstance(&deprovision)
	must("deprovision", err)
	_, err = await(removed.OperationKey)
	refused("the last operation of what is gone", err, osb.IsGoneError)
	_, err = client.DeprovisionInstance(&deprovision)
	must("deprovision again", err)
	fmt.Println("deprovisioned")
}
